#!/bin/sh
# Stands before a tool of the driver, and counts its runs. At the run that the plan names, processes are killed. Plans:
# "N before", "N after" (the driver, and the tool before or after its run), "N driver" (only the driver: the tool goes
# on), "N tool CALL M" and "N both CALL M" (at the Mth system call CALL of the tool), "0" (nobody). This script
# kills: the test is outside of the guest, and would be too late.
dir=${0%/*} tool=${0##*/}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
read -r at how call times < "$dir/plan"
read -r n < "$dir/count"
n=$((n + 1))
echo "$n" > "$dir/count"
[ "$n" = "$at" ] || exec "$tool" "$@"
case $how in
before)
    echo "$tool" > "$dir/killed"
    kill -KILL "$PPID" $$
    ;;
driver)
    echo "$tool" > "$dir/killed"
    kill -KILL "$PPID"
    exec "$tool" "$@"
    ;;
after)
    echo "$tool" > "$dir/killed"
    "$tool" "$@"
    kill -KILL "$PPID" $$
    ;;
esac
code=0
strace -o /dev/null -e "trace=$call" -e "inject=$call:signal=KILL:when=$times" "$tool" "$@" || code=$?
[ "$code" != 137 ] || echo "$tool" > "$dir/killed"
[ "$code $how" != "137 both" ] || kill -KILL "$PPID" $$
exit "$code"
