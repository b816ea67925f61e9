# shellcheck shell=bash
# Sourced by tests/run.sh: the guests that the tests on real LVM run in, one at a time or two.

CORE= # only the tests of core.txt, on this machine's own files
WITHOUT_CORE= # all others; those that versions may decide in any case, and each refusal, of which the core has less
VERSIONS_ONLY= # only those that versions may decide
AT_ONCE=2 # of what runs in the background
BEGUN=()  # of these, by `at_once`
MEANWHILE=() # what else `guest` begins, behind the tests of all suites: a name, and its command if that is another
LIFE_SECONDS=180
LIFE_SEED=1 # the same lives for each change
# For a commit, the same samples each time; the next commit has others.
SEED=${FLEXVOLUME_LVM_SEED:-$((16#$(git rev-parse --short=7 HEAD 2>/dev/null || date +%s)))}
SHUFFLE=${SHUFFLE:-} # a seed: the cases of a guest run in another order
CALLS=${FLEXVOLUME_LVM_CALLS:+FLEXVOLUME_LVM_CALLS=${FLEXVOLUME_LVM_CALLS@Q}}

# Prints the versions of what the driver runs, for a shell in a guest.
VERSIONS="for tool in 'lvm version' 'mount -V' 'mke2fs -V' 'mkfs.xfs -V' 'btrfs version' 'uname -r'; do
    \$tool 2>&1 | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1; done"

# in_guest PART COMMAND: boots a guest on both disks of a part of the tests, with what these want to know.
in_guest() {
    local part=$1
    # A case itself says what is active: udev's rules for LVM and md would activate, and lock, what
    # they like.
    boot "$part" "$SILENCE" "modprobe -a loop dm-mod; cd /run
        mkdir -p udev/rules.d; touch udev/rules.d/{64-md-raid-assembly,69-lvm}.rules; udevadm control --reload
        export FLEXVOLUME_LVM_DRIVER=$part/lvm FLEXVOLUME_LVM_BOOT_AGAIN=$part/again
        export FLEXVOLUME_LVM_POWER_DISK=/dev/vdb FLEXVOLUME_LVM_SEED=$SEED FLEXVOLUME_LVM_PACKAGES=$part/packages
        export RUST_BACKTRACE=$RUST_BACKTRACE RUST_LIB_BACKTRACE=$RUST_LIB_BACKTRACE ${KEEP:+FLEXVOLUME_LVM_KEEP=1}
        ${FULL:+export FLEXVOLUME_LVM_FULL=1}
        ${CORE:+export FLEXVOLUME_LVM_CORE=1}
        ${LIFE:+export FLEXVOLUME_LVM_LIFE=$LIFE}
        ${CALLS:+export $CALLS}
        ${KEEP:+trap 'echo The cases have ended: this is the guest. exit ends it. > /dev/tty2
            PS1=guest#\\  setsid --ctty --wait bash --norc -i < /dev/tty2 > /dev/tty2 2>&1' EXIT}
        $VERSIONS > $part/versions
        $2" "$part/disk" "$part/power"
}

# cases PART LOG NAME…: runs the tests of these names in a guest. The names go there in a file:
# the kernel's command line is too short for them.
cases() {
    local part=$1 shuffled=()
    local log=$part/$2
    shift 2
    printf '%s\n' "$@" > "$part/names"
    # libtest has the option only where unstable ones are allowed.
    [ -z "$SHUFFLE" ] || shuffled=(-Z unstable-options --shuffle-seed "$SHUFFLE")
    # By whole lines: the other part prints too.
    if ! in_guest "$part" "${SHUFFLE:+RUSTC_BOOTSTRAP=1} $part/guest --test-threads=1 ${shuffled[*]} --exact \$(cat $part/names)" |
        tee "$log" | sed -u "s/^/${part##*/}: /"; then
        # libtest has said what failed in the cases; the kernel may know why.
        say "${part##*/} failed"
        console "$part"
        return 1
    fi
}

# power_cut PART LOG NAME…: leaves calls under way in a guest, and resets it. What it printed may be
# lost then, so that goes into a file; its exit status is lost for certain.
power_cut() {
    in_guest "$1" "$1/guest --test-threads=1 --exact ${*:3} > $1/printed 2>&1
        cut_power" || true
    tee "$1/$2" < "$1/printed"
    grep -q '^test result: ok' "$1/$2"
}

# named PATTERN OR OPTION OF LIBTEST…: prints the names of the tests that it chooses.
named() { "$DIR/guest" --list "$@" | sed -n 's/: test$//p'; }

# listed LIST: prints the names of the tests that a list in tests/guest chooses, by parts of their names.
listed() {
    local name names
    mapfile -t names < <(sed 's/[[:space:]]*#.*//; /^$/d' "tests/guest/$1.txt")
    for name in "${names[@]}"; do
        [ -n "$(named "$name")" ] || failed "no test in the guest is called $name, as tests/guest/$1.txt has it"
    done
    named "${names[@]}"
}

# versioned SUITE: prints the names of the tests that versions may decide: of the tools, of the kernel, or of either.
versioned() {
    case " ${SUITES[*]} " in
        *" ${1%-tools}-tools "*) if [ "$1" = "${1%-tools}" ]; then listed kernels; else listed versioned; fi ;;
        *) { listed versioned && listed kernels; } | sort --unique ;;
    esac
}

# chosen SUITE [CASE…]: prints the names of the tests that run there.
chosen() {
    if [ $# -gt 1 ]; then
        named "${@:2}"
    elif [ -n "$CORE" ]; then
        listed core
    elif [ -n "$VERSIONS_ONLY" ] || [ "$1" != "${SUITES[0]}" ]; then
        versioned "$1"
    elif [ -n "$WITHOUT_CORE" ]; then
        { named && listed core && listed core && versioned "$1"; } | sort | uniq -c |
            awk '$1 != 3 || $2 ~ /^refusals::/ { print $2 }'
    else
        named
    fi
}

# part SUITE-NUMBER.RUN TEST…: runs them in a guest of their own, on the files of that Debian, or on this
# machine's if the suite is "guest". What goes on after a power-off takes another boot.
part() {
    local part=$DIR/$1 suite=${1%-*} name first=() cut=() later=()
    shift
    [ "$suite" = guest ] || { files_of "$suite" && kernel_of "$suite"; }
    mkdir "$part"
    cp "$DIR/guest" "$DIR/lvm" "$part/"
    [[ $* != *packages::* ]] || cp -r "$DIR/packages" "$part/"
    truncate -s 4G "$part/disk"
    truncate -s 40G "$part/power"
    for name in "$@"; do
        case $name in
            *::after_the_reboot_*) ;;
            *::when_the_power_goes_*)
                cut+=("$name")
                name=${name#*::when_the_power_goes_}
                later+=("$(named "after_the_reboot_${name%%_*}_")")
                ;;
            *) first+=("$name") ;;
        esac
    done
    if [ ${#first[@]} -gt 0 ]; then
        say "${part##*/}: ${#first[@]} tests on real LVM"
        timed "${part##*/}" cases "$part" 1.log "${first[@]}" || failed "${part##*/}"
    fi
    [ ${#cut[@]} = 0 ] || step "${part##*/}" power_cut "$part" 2.log "${cut[@]}"
    [ ${#later[@]} = 0 ] || step "${part##*/}" cases "$part" 3.log "${later[@]}"
    rm "$part"/{disk,power,guest,lvm}
}

# at_once COMMAND…: runs it beside what runs, once there is a processor for it.
at_once() {
    while [ "$(jobs -rp | wc -l)" -ge "$AT_ONCE" ]; do wait -n || true; done
    { "$@" || failed "$1 $2"; } &
    BEGUN+=($!)
}

# part_of NUMBER COUNT: prints those of the names that one of so many guests runs.
part_of() {
    # The reboots are the first one's.
    awk -v number="$1" -v count="$2" '/::power::/ { if (number == 1) print; next }
        n++ % count == number - 1'
}

# prepared DIR: puts the tests for a guest there, and the driver.
prepared() {
    local tests
    need_tests_guest
    say "building the tests for the guest"
    tests=$(artifact --test guest)
    [ -n "$tests" ] || die "the tests for the guest did not build"
    mkdir -p "$1"
    install "$tests" "$1/guest"
    install "$DRIVER" "$1/lvm"
}

# guest [CASE…]: in several guests at once if there are many.
# shellcheck disable=SC2120 # tests/run.sh hands its arguments on
guest() {
    local suite all mine run name count number
    prepared "$DIR"
    [ -n "${SUITE:-}" ] || { SUITES=(guest) && need_newer_uml; }
    for suite in "${SUITES[@]}"; do
        mapfile -t all < <(chosen "$suite" "$@")
        # Without a name, libtest would run all.
        [ ${#all[@]} != 0 ] || { failed "no test in the guest is called $*" && return; }
        [[ ${all[*]} != *packages::* ]] || need_packages
        [[ ${all[*]} != *lost_heads::* && ${all[*]} != *on_demand::* ]] || need_formats
        count=1
        [ ${#all[@]} -lt 10 ] || count=2
        # Cases differ in length: what is short runs beside what is long, and a guest starts when another has ended.
        [ ${#all[@]} -lt 16 ] || count=4
        [ ${#all[@]} -lt 150 ] || count=8
        for ((run = 1; run <= RUNS; run++)); do
            for ((number = 1; number <= count; number++)); do
                mapfile -t mine < <(printf '%s\n' "${all[@]}" | part_of "$number" "$count")
                [ ${#mine[@]} = 0 ] || at_once part "$suite-$number.$run" "${mine[@]}"
            done
        done
    done
    # What is short comes last, beside the guest that takes longest.
    # shellcheck disable=SC2086
    for name in "${MEANWHILE[@]}"; do at_once in_file "${name%% *}" ${name#* }; done
    MEANWHILE=()
    wait "${BEGUN[@]}" || true
    for suite in "${SUITES[@]}"; do
        cat "$DIR/$suite"-?.*/*.log > "$DIR/$suite.log"
        count "$suite" "$DIR/$suite.log" "$DIR/$suite-1.1/versions"
    done
}

# life [SECONDS [SEED]]: a node's life at random, in one guest.
life() {
    local LIFE=${1:-$LIFE_SECONDS} SEED=${2:-$SEED} part=$DIR/life
    local SILENCE=$((LIFE + 3600)) # A life that fails is played again and again.
    prepared "$part"
    if [ -n "${SUITE:-}" ]; then files_of "$SUITE" && kernel_of "$SUITE"; else need_newer_uml; fi
    truncate -s 1G "$part/disk" "$part/power"
    step life in_guest "$part" "$part/guest --test-threads=1 --ignored --exact life::life" | tee "$part/log"
    count life "$part/log" "$part/versions"
    echo "FLEXVOLUME_LVM_SEED=$SEED"
}

# shared [CASE…]: the tests run here, and boot two guests that share a disk. The guests end when the tests do.
shared() {
    local SUITE='' FILES='' UML='' tests here=$DIR/shared disk=/dev/shm/${DIR##*/}-shared
    need_tests_guest
    need_newer_uml
    need_lockd
    tests=$(artifact --test shared)
    [ -n "$tests" ] || die "the tests for two nodes did not build"
    mkdir "$here"
    install "$DRIVER" "$here/lvm"
    # In memory: its leases are made of many small writes.
    ln -sfn "$disk" "$here/disk"
    timed shared two_nodes "$here" "$tests" "$@" || {
        failed shared
        tail -n 20 "$here"/[ab]/printed
    }
    as_root rm -f "$disk"
    count shared "$DIR/shared.log"
}

two_nodes() {
    local here=$1
    shift
    # The inner shell expands these.
    # shellcheck disable=SC2016
    as_root sh -c 'echo $$ > "$0"; exec timeout --kill-after=10 0 "$@"' "$here/pid" env FLEXVOLUME_LVM_SHARED="$here" \
        FLEXVOLUME_LVM_PROCESSORS="$(processors | xargs)" FLEXVOLUME_LVM_LOCKD="$LOCKD" \
        FLEXVOLUME_LVM_UML="$UML" FLEXVOLUME_LVM_PRELOAD="$([ -n "$UML" ] || whole_registers "$here")" \
        FLEXVOLUME_LVM_LIFE="${FLEXVOLUME_LVM_LIFE:-45}" \
        FLEXVOLUME_LVM_SEED="${FLEXVOLUME_LVM_SEED:-$LIFE_SEED}" \
        BOOTS="$BOOTS" STEP="$STEP" "$@" --test-threads=1 2>&1 | until_silent "$SILENCE" "$here/pid" |
        tee "$DIR/shared.log"
}
