# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what DeepSpeed itself says of the memory of every setting that is given, as JSON."""

import json
import sys

from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs


def main():
    floors = []
    for stage, parameters, layer, gpus, nodes, optimizer, offload, init in json.load(sys.stdin):
        if stage == 2:
            floor = estimate_zero2_model_states_mem_needs(parameters, gpus, nodes, optimizer)
        else:
            floor = estimate_zero3_model_states_mem_needs(
                parameters, layer, gpus, nodes, optimizer, offload, init
            )
        floors.append([int(size) for size in floor[:2]])
    json.dump(floors, sys.stdout)


if __name__ == "__main__":
    main()
