# shellcheck shell=bash
# Sourced by tests/run.sh: what a contributor runs, what else must pass, and what is run before a release. As much
# of it at once as the machine has processors for.

# Units, replies, installation and pages; and beside them guests, two at once, with the core of the cases on real
# LVM, by tests/guest/core.txt.
core() {
    # At once: apt reads its lists each time.
    need_tests_guest "${HOST_TOOLS[@]}"
    need_host
    build
    say "building the tests"
    timed 'build of the tests' cargo test --quiet --workspace --no-run
    CORE=1 beside guest guest
    on_host
    wait
    cat "$DIR/beside-guest"
}

# All else that must pass, with the executable that is shipped. No case of the core is run again, except where a
# result may depend on versions.
rest() {
    PROFILE=release WITHOUT_CORE=1
    export SUITE="trixie bullseye bullseye-tools"
    need "${RUST_TOOLS[@]}"
    (build) > /dev/null 2>&1 & # That takes one processor for a minute or two.
    lint
    deny
    book
    msrv
    wait
    build
    step executable one_static_executable
    # What is missing is installed before anything runs beside.
    need_tests_guest
    need lintian:lintian rpm:rpm rpmlint:rpmlint linux.uml:user-mode-linux runc:runc "${PLANE_TOOLS[@]}"
    (need_unpacked containerd:containerd etcd:etcd-server)
    (here need_tests_guest && need_lockd && KUBERNETES='' need_kubernetes kubelet)
    need_packages
    # These wait more than they work, but for `bare`, which takes longest. It has the quickstart, and fuzzing its own night.
    beside kubelet kubelets
    beside plane planes
    beside shared shared
    beside bare bare
    AT_ONCE=5
    MEANWHILE=(selinux "life here life $LIFE_SECONDS $LIFE_SEED" release packages)
    # shellcheck disable=SC2119 # all cases
    guest
    wait
    cat "$DIR"/beside-*
}

# What costs much and finds little.
FULL_PARTS=(aarch64 release bare fuzz mutants proofs writes versions order)

# full [PART…]: all of these, or some.
full() {
    local part
    PROFILE=release
    for part in "$@"; do
        [[ " ${FULL_PARTS[*]} " == *" $part "* ]] || die "full has no part $part, only ${FULL_PARTS[*]}"
    done
    build
    for part in "${@:-"${FULL_PARTS[@]}"}"; do
        "full_$part"
    done
}

# Built the same way by the same code, and translated: five minutes, and it has found nothing since it was there.
full_aarch64() { aarch64; }

# What differs between two builds is a path or a time, and comes from a change of the release's own scripts.
full_release() { release twice; }

# The whole of tests/run.sh on bare Debians, by root and by a user: the quickstart and ten cases there run at each change.
full_bare() { bare whole; }

# It builds for longer than it runs, and the parsers have tests of their own at each change.
full_fuzz() { FUZZ_SECONDS=300 fuzz; }

# A quarter of an hour; the tables of `decide` are compared with every case besides.
full_mutants() { mutants data; }

# A test that has noticed once that its rule is gone notices again, unless it is changed. More than an hour.
# shellcheck disable=SC2119 # all of them
full_proofs() { proofs; }

# The power goes at every write of a life: a sample of these cuts runs at each change.
full_writes() {
    local FULL=1 SILENCE=36000
    guest kills::writes
}

# Their LVM or their kernel is between the oldest and the newest, or both are the oldest, which `rest` tries one by one: what
# breaks there breaks first by a new version, and not by a change.
full_versions() {
    local SUITE="sid bookworm bullseye" VERSIONS_ONLY=1 KERNEL=
    # shellcheck disable=SC2119 # all cases
    guest
    SUITE=trixie KERNEL=own
    # shellcheck disable=SC2119 # all cases
    guest
}

# A case may depend on what another has left: each night the cases run in another order.
full_order() {
    local SHUFFLE=$SEED
    say "SHUFFLE=$SHUFFLE"
    # shellcheck disable=SC2119 # all cases
    guest
}
