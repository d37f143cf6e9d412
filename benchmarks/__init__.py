"""Speed and quality, measured: absolute figures with the machine described, ratios inside one run, results kept."""
