# shellcheck shell=bash
# Sourced by tests/run.sh: a step and what failed in it, the counts of the runners, the verdict.

failed() { echo "$1" >> "$TOP/failed"; }

ended() {
    end_background
    # A guest ends with the run that began it.
    [ ! -s "$BOOTS" ] || as_root pkill -f "^timeout .*$TOP/" || true
    if [ -n "$UNDER_WAY" ]; then
        [ -e "$TOP/died" ] || failed "this run ended before its time"
        verdict || true
    fi
    rm -rf "$DIR" 2> /dev/null || as_root rm -rf "$DIR"
}

# step NAME COMMAND…: runs it, and goes on if it fails: one run shows all that is wrong.
step() {
    local name=$1
    shift
    say "$name: $*"
    # What mends it, where a command does.
    timed "$name" "$@" || failed "$name${MENDED_BY:+: $MENDED_BY}"
}

# beside NAME COMMAND…: runs it in the background.
beside() { in_file "$@" & }

# in_file NAME COMMAND…: what it prints is in $DIR/beside-NAME.
in_file() {
    local name=$1
    shift
    ("$@") > "$DIR/beside-$name" 2>&1 || failed "$name"
}

# here COMMAND…: runs it with this machine's own files in guests.
here() {
    local SUITE='' FILES='' UML=''
    "$@"
}

# count NAME LOG [VERSIONS]: adds up the results that libtest printed, and keeps the names of what
# failed. A runner without any has not run. VERSIONS is a file of what they ran on.
count() {
    local ran passed
    read -r ran passed < <(awk '
        /^test result: / { passed += $4; failed += $6; results++ }
        END { print (results ? passed + failed : "none"), passed + 0 }' "$2")
    # libtest lists them by name behind what they printed.
    awk -v runner="$1" '/^failures:$/ { names = "" } /^    [a-z0-9_]+(::[a-z0-9_]+)*$/ { names = names runner " " $1 "\n" }
        /^test result: FAILED/ { printf "%s", names }' "$2" >> "$TOP/cases"
    if [ "$ran" = none ] || [ "$ran" = 0 ]; then
        failed "$1: no test ran"
        ran=0
    elif [ "$ran" != "$passed" ]; then
        failed "$1: $((ran - passed)) tests failed"
    fi
    echo "$1 $ran $passed $([ $# -lt 3 ] || xargs < "$3")" >> "$TOP/counts"
}

# logged LOG COMMAND…: runs it, and keeps what it prints.
logged() {
    local log=$1
    shift
    "$@" 2>&1 | tee "$log"
}

# artifact OPTION OF CARGO… NAME: prints the path of the executable NAME, which cargo builds. It
# names others too, of which this one is made.
artifact() {
    timed "build of ${!#}" cargo build --quiet --message-format=json-render-diagnostics "$@" |
        grep -F "\"name\":\"${!#}\"" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

# unoptimized DIR: cargo builds below DIR in a third of the time, but for what is shipped: only the proof needs more.
unoptimized() {
    as_root mkdir -p "$1/.cargo"
    printf '[profile.dev.package.flexvolume-lvm-driver]\nopt-level = 0\n' | as_root tee "$1/.cargo/config.toml" > /dev/null
}

build() {
    say "building the driver as $PROFILE"
    DRIVER=$(artifact --profile "$PROFILE" --bin lvm)
    [ -n "$DRIVER" ] || die "the driver did not build"
    if [ "$PROFILE" != release ]; then
        # Each node of a case has a copy in its guest's memory. Three quarters of the driver are for debuggers.
        strip -o "$DIR/driver" "$DRIVER"
        DRIVER=$DIR/driver
    fi
}

# Seconds and guests of each step, the longest first. Steps run side by side.
times() {
    printf '%7s %6s  %s\n' seconds guests "step, of $SECONDS seconds in all and $(wc -l < "$BOOTS") guests"
    awk -F '\t' 'FILENAME == ARGV[1] { guests[$1]++; next }
        { seconds[$2] += $1 } END { for (name in seconds) printf "%7d %6s  %s\n", seconds[name], guests[name], name }' \
        "$BOOTS" "$TIMES" | sort -rn
}

verdict() {
    local name ran passed versions row total=0 good=0 bad
    UNDER_WAY=
    say result
    sed 's/^/FAILED /' "$DIR/failed"
    times
    sort "$DIR/cases" | uniq -c | awk -v runs="$RUNS" '{
        print "FAILED " $2 ": " $3 (runs > 1 ? ", " $1 " times in " runs " runs" : "") }'
    # Each with the versions that it ran on.
    row='%-14s %4s %6s  %-9s %-10s %-9s %-8s %-11s %s\n'
    # shellcheck disable=SC2059
    printf "$row" '' ran passed LVM util-linux e2fsprogs xfsprogs btrfs-progs Linux
    while read -r name ran passed versions; do
        # shellcheck disable=SC2059,SC2086
        printf "$row" "$name" "$ran" "$passed" $versions
        total=$((total + ran)) good=$((good + passed))
    done < "$DIR/counts"
    # shellcheck disable=SC2059
    printf "$row" total "$total" "$good"
    # Where every test has passed, what failed is a step that is none, as clippy.
    bad=$((total - good))
    [ "$bad" != 0 ] || bad=$(wc -l < "$DIR/failed")
    echo "$good passed, $bad failed"
    [ "$bad" = 0 ]
}
