# shellcheck shell=bash
# Runs in a guest that is a node, after tests/shared/pair.rs has said in HOST_ID, LOCKD and SHARE which
# one: joins the lock manager, and then runs what the tests ask for, each in a process of its own.
files=$SHARE/$NODE
for dir in usr/sbin usr/lib/x86_64-linux-gnu; do
    [ ! -d "$LOCKD/$dir" ] || mount -t overlay overlay -o "lowerdir=$LOCKD/$dir:/$dir" "/$dir"
done
hostname "node-$NODE"
modprobe -a dm-mod dm-thin-pool loop
# A case itself says what is active.
mkdir -p /run/udev/rules.d
touch /run/udev/rules.d/{64-md-raid-assembly,69-lvm}.rules
udevadm control --reload
sed -i 's/# use_lvmlockd = 0/use_lvmlockd = 1/' /etc/lvm/lvm.conf
echo "local { host_id = $HOST_ID }" > /etc/lvm/lvmlocal.conf
# A node has a watchdog, and needs it; here a test pulls the plug.
mkdir -p /etc/sanlock /run/sanlock
printf '%s\n' 'use_watchdog = 0' "our_host_name = node-$NODE" 'uname = root' 'gname = root' > /etc/sanlock/sanlock.conf
export LVM_SUPPRESS_FD_WARNINGS=1
# A lease runs out after 84 seconds, and not after 140. With 1 it does so after 68; but then a lockspace is
# lost when a busy machine's disk takes eight seconds, and each command says "error -221" from then on.
start_lvmlockd() {
    lvmlockd --adopt 1 --sanlock-timeout 3
    until lvmlockctl --info > /dev/null; do sleep 0.1; done
}
export -f start_lvmlockd
sanlock daemon
start_lvmlockd
(umask 077 && printf passphrase > /run/key)
for mode in attach mount-only; do
    mkdir -p "/run/$mode/exec/kubernetes.io~lvm" "/run/$mode/kubelet"
    cp "$SHARE/lvm" "/run/$mode/exec/kubernetes.io~lvm/"
    printf '%s\n' "attach = $([ $mode = attach ] && echo true || echo false)" \
        "kubelet_dirs = ['/run/$mode/kubelet']" '[encryption]' "key_file = '/run/key'" \
        "pbkdf_memory = '32k'" 'pbkdf_iterations = 4' '[volume_group.vg]' 'create = true' \
        > "/run/$mode/exec/kubernetes.io~lvm/config.toml"
done
# What is written to a console that is just being opened may stay unread until more is written.
exec 3< /dev/tty2
echo 0 > "$files/0.status"
# Until the tests have ended, however they did.
while read -r number; do
    (
        bash "$files/$number.sh" > "$files/$number.out" 2> "$files/$number.err"
        echo $? > "$files/$number.new"
        mv "$files/$number.new" "$files/$number.status"
    ) 3<&- &
done <&3
