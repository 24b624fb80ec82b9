"""Through the real binding against a driver library compiled here: three devices, one of them lost, one that can't tell much."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LIBRARY = r"""
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned int gpu, memory; } utilization;
typedef struct { unsigned int pid; unsigned long long used; unsigned int gi, ci; } process;
enum { OK = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, NO_PERMISSION = 4, TOO_SMALL = 7, NOT_LOADED = 9, LOST = 15 };
static int started;
int nvmlInitWithFlags(unsigned int flags) { (void)flags; if (getenv("NO_DRIVER")) return NOT_LOADED; started = 1; return OK; }
int nvmlShutdown(void) { started = 0; return OK; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : code == NOT_LOADED ? "Driver Not Loaded" : "Not Supported"; }
int nvmlDeviceGetCount_v2(unsigned int *count) { if (!started) return UNINITIALIZED; *count = 3; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) { if (index == 1) return LOST; *device = (void *)(long)(index + 1); return OK; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned int length) { snprintf(text, length, "GPU-%ld", (long)device - 1); return OK; }
int nvmlDeviceGetName(void *device, char *text, unsigned int length) { (void)device; snprintf(text, length, "NVIDIA Test"); return OK; }
int nvmlDeviceGetMemoryInfo(void *device, memory *m) { if ((long)device == 3) return NOT_SUPPORTED; m->total = 1000; m->free = 250; m->used = 750; return OK; }
int nvmlDeviceGetUtilizationRates(void *device, utilization *u) { if ((long)device == 3) return NO_PERMISSION; u->gpu = 87; u->memory = 30; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *bits) { (void)device; *bits = 0x1 | 0x4 | 0x40; return OK; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, process *list) {
  if ((long)device == 3) return NO_PERMISSION;
  if (!list) { *count = 1; return TOO_SMALL; }
  *count = 1; memset(list, 0, sizeof *list); list->pid = 4242; list->used = 600; return OK;
}
"""


def read(folder: Path, **env: str) -> Any:
    code = "import sys; from servewright.tools.telemetry.nvml import read_devices; print(read_devices().model_dump_json())"
    told = subprocess.run([sys.executable, "-c", code], env=os.environ | {"LD_LIBRARY_PATH": str(folder)} | env, capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: the stand-in driver library can't be made")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(LIBRARY)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "libnvidia-ml.so.1"), str(folder / "nvml.c")], check=True)
    return folder


def test_devices_with_their_faults(library: Path) -> None:
    good, lost, dumb = read(library)["devices"]
    assert (good["uuid"], good["name"]) == ("GPU-0", "NVIDIA Test")
    assert (good["memory_total"], good["memory_used"], good["utilisation"]) == (1000, 750, 87)
    assert good["throttled"] == ["power cap (software)", "temperature (hardware)"], "idle is no throttling"
    assert good["processes"] == {"4242": 600}
    assert "lost" in lost["problem"].lower() and lost["memory_total"] is None
    assert (dumb["memory_total"], dumb["utilisation"], dumb["processes"], dumb["problem"]) == (None, None, {}, "")


def test_a_driver_that_is_not_loaded_is_said(library: Path) -> None:
    told = read(library, NO_DRIVER="1")
    assert told["devices"] == [] and told["why_missing"].startswith("no NVIDIA driver: ")


def test_no_library_at_all(tmp_path: Path) -> None:
    told = read(tmp_path)
    assert told["devices"] or "no NVIDIA driver" in told["why_missing"]


def test_a_watch_gives_the_least_headroom_and_the_throttling(library: Path) -> None:
    code = (
        "import json, time; from servewright.tools.telemetry.devices import DeviceWatch; w = DeviceWatch(['GPU-0', 'GPU-2'], interval_s=0.01).start(); time.sleep(0.2); w.stop(); "
        "print(json.dumps([w.observables(), w.throttled(), len(w.readings) > 2, DeviceWatch(['GPU-9']).start().observables()]))"
    )
    told = subprocess.run([sys.executable, "-c", code], env=os.environ | {"LD_LIBRARY_PATH": str(library)}, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == [{"memory_headroom_share": 0.25}, ["power cap (software)", "temperature (hardware)"], True, {}]
