"""Chat models by name: the rule-based playbook, or any provider that LangChain knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tools.contract.errors import BadInput

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

PLAYBOOK = "playbook"
_EXPECTED = "playbook, or provider:name such as openai:gpt-5 or ollama:qwen3"


def chat_model(name: str, base_url: str | None = None) -> BaseChatModel:
    """The model called `name`. `base_url` points at a self-hosted server that speaks the provider's API.

    Raises `BadInput` for an unknown provider, a provider whose package isn't installed, or a missing key.
    """
    if name == PLAYBOOK:
        from .playbook.model import playbook

        if base_url:
            raise BadInput("--base-url", base_url, "no base URL: the playbook needs no server")
        return playbook()
    provider, colon, model = name.partition(":")
    if not (provider and colon and model):
        raise BadInput("--model", name, _EXPECTED)
    from langchain.chat_models import init_chat_model

    try:
        if base_url:
            return init_chat_model(model, model_provider=provider, base_url=base_url)
        return init_chat_model(model, model_provider=provider)
    except ImportError as error:
        raise BadInput("--model", name, f"an installed provider package: {_first_line(error)}") from None
    except ValueError as error:
        raise BadInput("--model", name, f"{_EXPECTED} ({_first_line(error)})") from None
    except Exception as error:
        # Every provider has its own exception for a missing key; all of them are the user's to mend.
        raise BadInput("--model", name, f"a provider that can be set up here ({type(error).__name__}: {_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
