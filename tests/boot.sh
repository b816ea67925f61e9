# shellcheck shell=bash
# Sourced by the scripts that boot a guest: what they print, and how they end.
# shellcheck source=tests/need.sh
. tests/need.sh
# shellcheck source=tests/tools.sh
. tests/tools.sh
# shellcheck source=tests/uml.sh
. tests/uml.sh
# shellcheck source=tests/suite.sh
. tests/suite.sh

say() { printf '\n== %s\n' "$*"; }

# timed NAME COMMAND…: notes how many seconds it takes. What it runs is a part of that, and so are the guests.
timed() {
    local begun=$SECONDS status=0 outer=${STEP:-}
    local -x STEP=${outer:-$1}
    shift
    "$@" || status=$?
    [ -z "$outer" ] || return "$status"
    printf '%s\t%s\n' $((SECONDS - begun)) "$STEP" >> "${TIMES:-/dev/null}"
    return "$status"
}

# usage SCRIPT [WORD]: prints the head of a script and ends, well if the word asks for that.
usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "$1"
    [[ ${2:-} == --help || ${2:-} == -h ]] && exit
    exit 2
}

# In a run of the tests it is also what failed.
die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    [ -z "${UNDER_WAY:-}" ] || { failed "$*" && touch "$TOP/died"; }
    exit 1
}

# until_silent SECONDS FILE: hands on each line that it reads. If none comes for so long, the process whose id is
# in FILE is ended: a slow machine is not a failure.
until_silent() {
    local line status=0
    while IFS= read -r -t "$1" line || { status=$? && [ "$status" -le 128 ] && [ -n "$line" ]; }; do
        printf '%s\n' "$line"
    done
    [ "$status" -gt 128 ] || return 0
    printf '%s\n' "$line" "nothing was printed for $1 seconds, and so that was stopped"
    # The shell has a kill of its own.
    # shellcheck disable=SC2016
    as_root sh -c 'kill "$0"' "$(cat "$2")"
    cat
}

# with_id FILE COMMAND…: runs it by timeout(1), which hands a signal on, and kills what does not obey. Its process id is
# in FILE.
with_id() { sh -c 'echo $$ > "$0"; exec timeout --kill-after=10 0 "$@"' "$@"; }
