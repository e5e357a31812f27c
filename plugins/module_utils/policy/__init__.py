# SPDX-License-Identifier: BSD-2-Clause
"""Judge a host against a policy: pure rules, standard library only, no input or output."""
