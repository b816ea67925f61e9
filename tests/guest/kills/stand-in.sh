#!/bin/sh
# Stands before a tool: counts its runs, and stops at the one that the plan names, so that the
# test can kill whom it wants. Plans: "N before", "N after", "N CALL:M" (the Mth system call CALL
# has been made), "all CALL,CALL…" (only write down the calls of all tools), "none".
dir=${0%/*} tool=${0##*/}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
read -r at how <"$dir/plan"
read -r n <"$dir/count"
n=$((n + 1))
echo "$n" >"$dir/count"
# Who lists the processes sees this, too.
read -r parent <"/proc/$PPID/cmdline"
echo "$n $tool $$ $* of $parent" >>"$dir/ran"
case "$at $how" in
"$n before")
    kill -STOP $$
    ;;
"$n after")
    code=0
    "$tool" "$@" || code=$?
    kill -STOP $$
    exit "$code"
    ;;
"$n "*)
    exec strace -D -o "$dir/trace" -e "trace=${how%:*}" \
        -e "inject=${how%:*}:signal=STOP:when=${how#*:}" "$tool" "$@"
    ;;
"all "*)
    exec strace -D -f --seccomp-bpf -o "$dir/trace.$n" -e "trace=$how" "$tool" "$@"
    ;;
esac
exec "$tool" "$@"
