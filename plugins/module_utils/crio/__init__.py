# SPDX-License-Identifier: BSD-2-Clause
"""CRI-O: what its containers have, which its own files state."""
