# SPDX-License-Identifier: GPL-3.0-or-later
# One command per intent. Each sets up what it needs; all but `quick` need root on Debian 12.
.PHONY: zipapp quick demo film test oracle torture faults hostile seeds runs why blackbox healed mutants fuzz audit bench releases controllers docs lint unit host molecule collection clean

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
MINUTES := 45
COLLECTIONS := $(CURDIR)/build/collections
SOURCES := $(shell find galaxy.yml meta plugins roles playbooks LICENSES README.md CHANGELOG.md changelogs -type f -not -name '*.pyc')

export ANSIBLE_COLLECTIONS_PATH := $(COLLECTIONS)
export ANSIBLE_HOME := $(CURDIR)/build/ansible
export PATH := $(BIN):$(PATH)
export PYTHONPATH := $(CURDIR)
export PYTHONDONTWRITEBYTECODE := 1

# What is known in seconds, on any Linux without root; PLACE=docker for what concerns one place.
quick:
	@sh tests/venv.sh $(VENV)
	@$(BIN)/python -m tests.quick $(PLACE)

demo: .setup collection
	@$(BIN)/python -m tests.demo

# The demo again, recorded and drawn for the documentation.
film: .setup collection
	@$(BIN)/python -m tests.film

test: .setup collection
	@$(BIN)/python -m tests.run --minutes $(MINUTES) $(if $(PLACE),--place $(PLACE))

bench: .setup collection
	@$(BIN)/python -m tests.bench

# Every prediction against the real thing; `make test` runs a share of it.
oracle: .setup collection
	@$(BIN)/python -m tests.oracle

# Runs killed and starved at every step, the power cut between their writes.
torture: .setup collection
	@$(BIN)/python -m tests.torture

# Known ways to break a host, alone and in pairs: is the line named, and do the commands mend it?
faults: .setup
	@$(BIN)/python -m tests.faults
	@$(BIN)/python -m tests.faults.paste

# A user of the host attacks root's commands: what was read, written, run, drained or held up?
hostile: .setup
	@$(BIN)/python -m tests.hostile

# Five failures of training runs with the real libraries: foretold, put right, gone. Some GB.
seeds: .setup
	@$(BIN)/python -m tests.seeds

# Some two hundred runs drawn for the real libraries, at what preflight allows and at less. An hour.
runs: .setup
	@$(BIN)/python -m tests.seeds.drawn

# What programs wrote when they died, each for a known reason: is it told, is nobody blamed?
why: .setup
	@$(BIN)/python -m tests.why

# Runs that are watched die at a limit, or of something else; here, as root. Then those that only
# the black box of the host sees, which climb as slowly as real ones. Half an hour.
blackbox: .setup
	@$(BIN)/python -m tests.blackbox
	@$(BIN)/python -m tests.blackbox --host --slower 8

# Real DataLoader loops at 95 % of a limit are raised, and go on. Twenty minutes on an idle machine.
healed: .setup
	@$(BIN)/python -m tests.healed

# The library broken in 200 places, one at a time: do the fast tests see it? A quarter of an hour.
mutants: .setup
	@$(BIN)/python -m tests.mutants

fuzz: .setup
	@$(BIN)/python -m tests.fuzz

# What is known of the packages that development uses; targets need none.
audit: .setup
	@$(BIN)/pip-audit --local

# The scenario on each Debian release, and the collection run by each ansible-core: both take
# long, and both write docs/supported.md.
releases controllers: .setup collection
	@$(BIN)/python -m tests.releases $@

# The pages of docs/, of every cause, of modules and roles as one site: build/site/index.html.
docs: .setup collection
	@rm -rf build/docs build/site
	@cp -r docs build/docs
	@python -m tests.reference build/docs
	@install -d -m 0755 build/docs/collections
	@antsibull-docs collection --use-current --squash-hierarchy --dest-dir build/docs/collections mlhost.limits
	@sphinx-build -q -W --keep-going -b html build/docs build/site

# The whole command as one file to carry; it needs a Python and nothing else.
zipapp:
	@python3 -m tests.zipapp build/mlhost-limits.pyz

lint unit host molecule: .setup collection
	@$(BIN)/python -m tests.run $@

collection: build/collection.stamp

# What ships is what is tested: the tarball, installed.
build/collection.stamp: $(SOURCES) | .setup
	@rm -rf $(COLLECTIONS) build/mlhost-limits-*.tar.gz
	@mkdir -p build
	@$(BIN)/ansible-galaxy collection build --force --output-path build . > build/collection.log
	@$(BIN)/ansible-galaxy collection install --offline --force -p $(COLLECTIONS) build/mlhost-limits-*.tar.gz >> build/collection.log
	@touch $@

.PHONY: .setup
.setup:
	@sh tests/setup.sh $(VENV)

clean:
	rm -rf build $(VENV)
