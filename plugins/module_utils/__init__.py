# SPDX-License-Identifier: BSD-2-Clause
"""What a training host owes its jobs: the policy, the probes and the changes."""
