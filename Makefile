# cohort. `make help` lists what can be made.
#
# Nothing is built inside src/ or tests/: objects go to build/$(VARIANT)/,
# one folder a variant, so that debug and release never mix.

VARIANT ?= release
V       ?= 0
NP      ?= 1 2 4
PREFIX  ?= /usr/local
WERROR  ?=
ARCH    ?=

# --- Where things are ---------------------------------------------------
# MPI     mpicc.mpich where it exists (mpicc may be another MPI's), or MPICC=;
#         mpiexec is its neighbour, or MPIEXEC=
# others  pkg-config, or without root: DNNL_ROOT= YAML_ROOT= HDF5_ROOT=
#         CHECK_ROOT=, each a prefix with include/ and lib/
# SimGrid smpicc in PATH, or SMPICC=; smpirun is its neighbour. `make sim` alone
#         needs it

ifeq ($(MPICC),)
MPICC    := $(shell command -v mpicc.mpich || command -v mpicc)
endif
ifeq ($(MPIEXEC),)
MPIEXEC  := $(dir $(firstword $(MPICC)))
MPIEXEC  := $(MPIEXEC:./=)$(subst mpicc,mpiexec,$(notdir $(firstword $(MPICC))))
endif
SMPICC   ?= smpicc
HDF5_PKG := $(shell for p in hdf5-serial hdf5-mpich hdf5; do pkg-config \
                --exists $$p 2>/dev/null && echo $$p && break; done)

# $(call ...,NAME_ROOT,pkg-config name,-llibrary)
prefix_cflags = $(if $($(1)),-I$($(1))/include,$(shell \
                    pkg-config --cflags $(2) 2>/dev/null))
prefix_libs   = $(if $($(1)),$(call from_root,$($(1)),$(3)),$(shell \
                    pkg-config --libs $(2) 2>/dev/null || echo $(3)))
from_root     = $(foreach lib,$(wildcard $(1)/lib $(1)/lib64),\
                    -L$(lib) -Wl,-rpath,$(lib)) $(2)

PKG_CFLAGS := $(call prefix_cflags,DNNL_ROOT,dnnl) \
              $(call prefix_cflags,YAML_ROOT,yaml-0.1) \
              $(call prefix_cflags,HDF5_ROOT,$(HDF5_PKG))
FILE_LIBS  := $(call prefix_libs,YAML_ROOT,yaml-0.1,-lyaml) \
              $(call prefix_libs,HDF5_ROOT,$(HDF5_PKG),-lhdf5) -lz -lm
PKG_LIBS   := $(call prefix_libs,DNNL_ROOT,dnnl,-ldnnl) $(FILE_LIBS)
CHECK_CFLAGS := $(call prefix_cflags,CHECK_ROOT,check)
CHECK_LIBS   := $(call prefix_libs,CHECK_ROOT,check,-lcheck \
                    $(if $(wildcard $(CHECK_ROOT)/lib*/libsubunit.*),-lsubunit))

# --- Flags --------------------------------------------------------------
# CFLAGS and LDFLAGS are left to the user; ours have names of their own.
# The default build runs on every node of a mixed cluster: hot loops choose
# their instructions at run time. ARCH=native is faster to compile for one.
# -ffp-contract=off: the same bits on every kind of node.
# -fno-math-errno: else a square root is never vectorised; the same bits.
# -Wno-stringop-overflow: gcc takes MPICH's MPI_STATUSES_IGNORE, the address 1,
# for a buffer of no bytes (pmodels/mpich issue 5687).

OPT.release = -O3 -g
OPT.debug   = -O0 -g
OPT.asan    = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
              -fno-sanitize-recover=all
OPT.tsan    = -O1 -g -fsanitize=thread

STD      = -std=c17 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -fopenmp
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wvla -Wformat=2 -Wno-unknown-warning-option \
           -Wno-stringop-overflow $(if $(WERROR),-Werror)
BUILD    = build/$(VARIANT)
VERSION := $(shell cat VERSION)
COMPILE  = $(or $(MPICC),$(error No mpicc here: install MPICH (scripts/demo \
           does) or give MPICC=)) $(STD) $(WARN) $(OPT.$(VARIANT)) \
           $(if $(ARCH),-march=$(ARCH)) -DCOH_VERSION='"$(VERSION)"' \
           -Isrc -MMD -MP $(PKG_CFLAGS) $(CFLAGS)

ifeq ($(V),0)
QUIET = @printf '  %-5s %s\n' $(1) $@;
endif

ifeq ($(OPT.$(VARIANT)),)
$(error VARIANT is '$(VARIANT)', must be release, debug, asan or tsan)
endif

# --- Files --------------------------------------------------------------
# A new .c file under src/ or tests/ needs no line here.

ROOMS      = common common/optim worker worker/nn server cli
SRC        = $(foreach room,$(ROOMS),$(wildcard src/$(room)/*.c))
OBJ        = $(SRC:%.c=$(BUILD)/%.o)
MAIN       = $(BUILD)/src/main.o
UNIT_TESTS = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/unit/test_*.c))
MPI_TESTS  = $(patsubst %.c,$(BUILD)/%,$(wildcard tests/mpi/mpi_*.c))
TESTS      = $(UNIT_TESTS) $(MPI_TESTS)
E2E_TESTS  = $(wildcard tests/e2e/*.sh)
SOURCES    = $(shell find src tests -name '*.[ch]')
DEPS       = $(sort $(OBJ:.o=.d) $(SIM_OBJ:.o=.d)) $(MAIN:.o=.d) $(TESTS:%=%.d)
# What runs under SimGrid: neither oneDNN nor what needs it, and src/smpi
# instead of cli/job_compute.c and two more.
SIM_BUILD  = build/sim
SIM_CLI    = args command job threads train
SIM_SRC    = $(foreach room,common common/optim worker server smpi,\
                 $(filter-out %/clock.c %/signals.c,$(wildcard src/$(room)/*.c))) \
             $(SIM_CLI:%=src/cli/%.c)
SIM_OBJ    = $(SIM_SRC:%.c=$(BUILD)/%.o)
SIM_TESTS  = $(wildcard tests/sim/*.sh)
to_run     = $(foreach path,$(1),$(if $(filter /%,$(path)),,./)$(path))

# --- What to make -------------------------------------------------------

.PHONY: all check tests test mpitest e2e sim asan tsan layers fmt lint \
        reference install clean help FORCE
.DEFAULT_GOAL := all

all: $(BUILD)/cohort         ## build build/release/cohort

check: lint layers test mpitest e2e ## everything a change must pass

tests: $(TESTS)

# Some tests ask for more memory than there is: NULL is the answer they want.
test: export ASAN_OPTIONS = allocator_may_return_null=1
test: export TSAN_OPTIONS = allocator_may_return_null=1:suppressions=.tsan
test: $(UNIT_TESTS)          ## run the tests that need no MPI
	@scripts/each 300 $(call to_run,$^)

# Ranks share few cores here: one thread each. MPICH keeps some memory past
# MPI_Finalize, so leaks are looked for in the unit tests only.
mpitest: export OMP_NUM_THREADS = 1
mpitest: export ASAN_OPTIONS = allocator_may_return_null=1:detect_leaks=0
mpitest: $(MPI_TESTS)        ## run the MPI tests on NP="1 2 4" ranks
	@scripts/each -m '$(MPIEXEC)' -n '$(NP)' 120 $(call to_run,$^)

e2e: all                     ## run the end-to-end scripts of tests/e2e
	@COHORT=$$(realpath $(BUILD)/cohort) MPIEXEC='$(MPIEXEC)' \
	    scripts/each 900 $(E2E_TESTS)

# SimGrid runs all ranks in one process, which must have nothing of its own
# beside them.
sim:                         ## simulate 8 ranks by SimGrid (libsimgrid-dev)
	@command -v $(SMPICC) >/dev/null || { echo 'make sim: no $(SMPICC) here:' \
	    'install SimGrid (Debian: libsimgrid-dev), or give SMPICC=' >&2; exit 1; }
	$(MAKE) MPICC=$(SMPICC) BUILD=$(SIM_BUILD) VARIANT=release \
	    CFLAGS='$(CFLAGS) -DSMPI_NO_OVERRIDE_MALLOC' $(SIM_BUILD)/simulation
	@BUILD=$(SIM_BUILD) scripts/layers
	@COHORT=$$(realpath $(SIM_BUILD)/simulation) MPIEXEC=$$PWD/scripts/simulate \
	    SMPIRUN='$(subst smpicc,smpirun,$(SMPICC))' scripts/each 300 $(SIM_TESTS)

# Slower code gets more of Check's time.
asan tsan: export CK_TIMEOUT_MULTIPLIER = 10

asan:                        ## all tests under address + UB sanitizers
	$(MAKE) -k VARIANT=asan test mpitest NP=2

# UCX, which MPICH may sit on, hooks what a thread does as it ends: too late
# for the thread sanitizer.
tsan: export UCX_MEM_EVENTS = no
tsan:                        ## the unit tests under the thread sanitizer
	$(MAKE) VARIANT=tsan test

layers:                      ## fail if a room includes one above it
	@scripts/layers

fmt:                         ## rewrite the sources in the house format
	clang-format -i $(SOURCES)

lint:                        ## fail if `make fmt` or cppcheck finds anything
	@case "$$(clang-format --version 2>&1)" in \
	*' version 14.'*) clang-format --dry-run --Werror $(SOURCES);; \
	*) echo 'lint: no clang-format 14 here, so the format is not checked';; \
	esac
	cppcheck --quiet --error-exitcode=1 --inline-suppr -Isrc \
	    --suppressions-list=.cppcheck --enable=warning,portability src

reference: all               ## write config/reference.yaml anew
	$(BUILD)/cohort help config --yaml > config/reference.yaml

install: all                 ## copy the program and its configs to PREFIX
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/cohort
	install $(BUILD)/cohort $(DESTDIR)$(PREFIX)/bin
	cp -r config docs README.md LICENSE $(DESTDIR)$(PREFIX)/share/cohort

clean:                       ## remove build/
	rm -rf build

help:                        ## list the targets
	@echo 'make TARGET [VARIANT=release|debug|asan|tsan] [V=1] [ARCH=native]'
	@echo '     [NP="1 2 4"] [PREFIX=/usr/local] [WERROR=1] [MPICC=...]'
	@echo '     [DNNL_ROOT=...] [YAML_ROOT=...] [HDF5_ROOT=...] [CHECK_ROOT=...]'
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12

# `make print-MPICC` prints a variable, for scripts.
print-%:
	@echo '$($*)'

# --- How to make it -----------------------------------------------------
# $(BUILD)/flags changes only when the compile line does; everything depends
# on it, so new flags rebuild and unchanged ones do not. $(BUILD)/files does
# the same for the list of objects, of which one may have gone.

$(BUILD)/flags: export LINE = $(COMPILE) $(LDFLAGS) $(PKG_LIBS) \
                              $(CHECK_CFLAGS) $(CHECK_LIBS)
$(BUILD)/files: export LINE = $(OBJ)
$(BUILD)/flags $(BUILD)/files: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$LINE" | cmp -s - $@ || printf '%s\n' "$$LINE" > $@

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call QUIET,CC)$(COMPILE) -c -o $@ $<

$(BUILD)/libcohort.a: $(OBJ) $(BUILD)/files
	$(call QUIET,AR)rm -f $@ && ar rcs $@ $(OBJ)

$(BUILD)/cohort: $(MAIN) $(BUILD)/libcohort.a
	$(call QUIET,LINK)$(COMPILE) -o $@ $^ $(LDFLAGS) $(PKG_LIBS)

$(BUILD)/simulation: $(SIM_OBJ)
	$(call QUIET,LINK)$(COMPILE) -o $@ $^ $(LDFLAGS) $(FILE_LIBS)

$(TESTS): $(BUILD)/%: %.c $(BUILD)/libcohort.a $(BUILD)/flags
	@mkdir -p $(@D)
	$(call QUIET,TEST)$(COMPILE) $(CHECK_CFLAGS) -Itests -MF $@.d -MT $@ \
	    -o $@ $< $(BUILD)/libcohort.a $(LDFLAGS) $(CHECK_LIBS) $(PKG_LIBS)

-include $(DEPS)
