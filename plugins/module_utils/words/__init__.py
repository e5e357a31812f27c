# SPDX-License-Identifier: BSD-2-Clause
"""The words that start a run: command lines, scripts and configuration files, read as facts."""
