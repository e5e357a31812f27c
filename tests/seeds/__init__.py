# SPDX-License-Identifier: GPL-3.0-or-later
"""Five failures of training runs, each with the real library: foretold, put right, gone."""
