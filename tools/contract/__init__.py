"""The words of Servewright as types. Knows nothing but itself."""
