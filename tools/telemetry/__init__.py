"""What engines and devices say of themselves: Prometheus counters, NVML."""
