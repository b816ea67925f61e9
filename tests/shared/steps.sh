#!/bin/bash
# Stands before a tool of the driver: counts its runs, and at the step that is planned kills the driver,
# whose child it is. "N driver": the tool goes on by itself; "N after": it has ended; "N CALL M": it is
# killed too, at its Mth system call CALL. As `find COMMAND…` it prints the steps of a call that
# succeeds; as `cut STEP COMMAND…` it kills there. `own CALL M` is a step of the driver's own.
dir=${0%/*} tool=${0##*/}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# plan STEP
plan() {
    echo 0 > "$dir/count"
    echo "$1" > "$dir/plan"
}

# calls FILE CALL PREFIX…: a step for each system call in a trace
calls() {
    seq -f "$3 $2 %g $4" "$(grep -c "^$2(" "$1")"
}

case $tool in
    find)
        rm -f "$dir/ran" "$dir"/trace.*
        plan all
        strace -o "$dir/own" -e trace=rmdir,flock,mount,umount2 "$@" > "$dir/reply"
        grep '"Success"' "$dir/reply" > /dev/null || { cat "$dir/reply" && exit 1; }
        plan none
        for call in rmdir flock mount umount2; do calls "$dir/own" $call own; done
        while read -r n tool; do
            echo "$n driver - $tool"
            echo "$n after - $tool"
            [ ! -e "$dir/trace.$n" ] || for call in ioctl write; do
                calls "$dir/trace.$n" $call "$n" "$tool"
            done
        done < "$dir/ran"
        exit
        ;;
    cut)
        read -r at how times _ <<< "$1"
        step=$1
        shift
        if [ "$at" = own ]; then
            strace -o /dev/null -e "trace=$how" -e "inject=$how:signal=KILL:when=$times" "$@"
        else
            plan "$step"
            "$@"
        fi
        plan none
        exit 0
        ;;
esac
read -r at how times _ < "$dir/plan"
read -r n < "$dir/count"
n=$((n + 1))
echo "$n" > "$dir/count"
case "$at $how" in
    "$n driver") kill -9 $PPID ;;
    "$n after")
        "$tool" "$@"
        kill -9 $PPID
        exit
        ;;
    "$n "*)
        strace -o /dev/null -e "trace=$how" -e "inject=$how:signal=KILL:when=$times" "$tool" "$@"
        code=$?
        [ $code != 137 ] || kill -9 $PPID
        exit $code
        ;;
    "all ")
        echo "$n $tool" >> "$dir/ran"
        case $tool in
            lvchange | lvcreate) exec strace -o "$dir/trace.$n" -e trace=ioctl,write "$tool" "$@" ;;
        esac
        ;;
esac
exec "$tool" "$@"
