"""What a job finds around it."""

import os

print("my GPU is", os.environ["CUDA_VISIBLE_DEVICES"], "of", os.environ["OPTIMUS_NODE"])
