# SPDX-License-Identifier: BSD-2-Clause
"""Read a host: each function measures one thing and judges nothing."""
