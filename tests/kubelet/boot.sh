# shellcheck shell=bash
# Sourced by tests/run.sh: a kubelet, what its pods run, and the guest that they run in.

KUBELET_LIMIT=1800 # seconds without a line from a guest
CASES_AT_ONCE=4    # in a guest
PROGRAMS=          # the directory of the programs of Kubernetes
VERSION=           # theirs

# need_kubernetes PROGRAM…: sets PROGRAMS to a directory with these programs, and VERSION to theirs.
# They come from the directory that KUBERNETES names; without it, they are built here, once. Nothing is downloaded but
# by apt.
need_kubernetes() {
    local program from
    if [ -z "${KUBERNETES:-}" ]; then
        PROGRAMS=$CACHE
        for program in "$@"; do
            [ -x "$CACHE/$program" ] || build_kubernetes "$program"
        done
    else
        PROGRAMS=$DIR/kubernetes
        mkdir -p "$PROGRAMS"
        for program in "$@"; do
            from=$(realpath -m "$KUBERNETES/$program")
            [ -x "$from" ] || die "KUBERNETES=$KUBERNETES has no $program that can be run"
            ln -sfn "$from" "$PROGRAMS/$program"
        done
    fi
    VERSION=$("$PROGRAMS/$1" --version) || die "$1 does not run here"
    VERSION=${VERSION##*v}
}

# Whether the version is this one or newer: since 1.27.
since() { printf '%s\n' "$1" "$VERSION" | sort --version-sort --check=quiet; }

# build_kubernetes PROGRAM…: builds programs from Debian's source package, which holds all that
# they need, and keeps them in the cache.
build_kubernetes() {
    local program top=$CACHE/kubernetes
    # Written last of all.
    [ -s "$top/version" ] || timed "sources of Kubernetes" kubernetes_sources "$top"
    need go:golang-go
    for program in "$@"; do
        say "building $program, which takes some minutes"
        (
            cd "$top/go/src/k8s.io/kubernetes"
            export GOPATH=$top/go GO111MODULE=off CGO_ENABLED=0
            [ "$program" != kube-apiserver ] || describe_api "$top"
            version=v$(cat "$top/version")
            minor=${version#v*.}
            set_to=k8s.io/kubernetes/vendor/k8s.io/component-base/version
            timed "build of $program" nice go build -trimpath -ldflags "-s -w -X $set_to.gitVersion=$version \
                -X $set_to.gitMajor=1 -X $set_to.gitMinor=${minor%%.*}" \
                -o "$top/$program" "k8s.io/kubernetes/cmd/$program"
        ) || die "$program did not build; with KUBERNETES= the tests take programs that are there already"
        mv "$top/$program" "$CACHE/$program"
    done
}

# describe_api DIR: writes the one source file that is not among the sources, as it is generated.
describe_api() {
    local packages
    packages=$(grep -rl --include='*.go' '+k8s:openapi-gen=' cmd pkg staging/src/k8s.io |
        sed 's,/[^/]*$,,; s,^staging/src,vendor,; s,^,k8s.io/kubernetes/,' |
        grep -v -e /code-generator/ -e /sample-apiserver/ | sort -u | paste -sd,)
    go build -o "$1/openapi-gen" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
    "$1/openapi-gen" --input-dirs "$packages" --report-filename "$1/violations" \
        --output-package k8s.io/kubernetes/pkg/generated/openapi --output-file-base zz_generated.openapi \
        --go-header-file vendor/k8s.io/code-generator/hack/boilerplate.go.txt
}

# kubernetes_sources DIR: fetches and unpacks the source package. apt's own lists stay as they are.
kubernetes_sources() {
    local top=$1 apt file version
    command -v apt-get > /dev/null ||
        die "Kubernetes is built from Debian's sources; elsewhere, name a directory of its programs with KUBERNETES="
    need dpkg-source:dpkg-dev
    say "fetching the sources of Kubernetes with apt"
    rm -rf "$top"
    mkdir -p "$top/apt/sources" "$top/apt/lists/partial" "$top/go/src/k8s.io"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" > "$top/apt/sources/${file##*/}"
    done
    # Either kind of file may be missing.
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2> /dev/null || true; } |
        sed -n 's/^deb[[:space:]]/deb-src /p' > "$top/apt/sources/more.list"
    apt=(apt-get -qq -o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$top/apt/sources"
        -o "Dir::State::Lists=$top/apt/lists" -o APT::Sandbox::User=root)
    (
        cd "$top"
        # One library among the sources spoils memory when Go is 1.18 or newer. Debian has a later one.
        library=golang-github-modern-go-reflect2
        "${apt[@]}" update && "${apt[@]}" source --download-only kubernetes "$library" &&
            dpkg-source --no-check -x kubernetes_*.dsc go/src/k8s.io/kubernetes > /dev/null &&
            rm -r go/src/k8s.io/kubernetes/vendor/github.com/modern-go/reflect2 &&
            dpkg-source --no-check -x "$library"_*.dsc \
                go/src/k8s.io/kubernetes/vendor/github.com/modern-go/reflect2 > /dev/null
    ) || die "apt has no sources of Kubernetes here; name a directory of its programs with KUBERNETES="
    version=$(cd "$top/go/src/k8s.io/kubernetes" && dpkg-parsechangelog --show-field Version)
    # 1.20.5+really1.20.2-1.1 is 1.20.2.
    version=${version##*really}
    rm -rf "$top/apt" "$top"/*_*
    echo "${version%%[-+~]*}" > "$top/version"
}

# pod_image TAR: an image with nothing but a static busybox, in the form that `ctr` imports.
pod_image() {
    local tar=$1 work applet digest
    work=$(mktemp -d -p "$DIR")
    mkdir -p "$work"/root/{bin,data,dev,etc,proc,sys,tmp}
    cp "$(command -v busybox)" "$work/root/bin/busybox"
    for applet in cat chmod date dd df echo id ls mkdir mount rm sh sleep stat sync tail touch wc; do
        ln -s busybox "$work/root/bin/$applet"
    done
    tar -C "$work/root" --owner=0 --group=0 -cf "$work/layer.tar" .
    digest=$(sha256sum < "$work/layer.tar")
    printf '{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/bin"],"Cmd":["tail","-f","/dev/null"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "${digest%% *}" > "$work/config.json"
    printf '[{"Config":"config.json","RepoTags":["localhost/pod:test"],"Layers":["layer.tar"]}]' \
        > "$work/manifest.json"
    tar -C "$work" -cf "$tar" config.json layer.tar manifest.json
    rm -rf "$work"
}

# kubelet_guest BOOT ARGUMENT OF LIBTEST…: boots a guest with a disk for the volumes, and runs cases in it. What they
# print is in $DIR/BOOT.log. The guest ends as if its plug had been pulled.
kubelet_guest() {
    local name=$1 command BOOT_FILES=$DIR/$1
    shift
    command="modprobe -a dm-mod loop overlay br_netfilter 2> /dev/null; cd /run
        export FLEXVOLUME_LVM_DRIVER=$DIR/lvm FLEXVOLUME_LVM_IMAGE=$DIR/pod.tar
        export FLEXVOLUME_LVM_INSTALLER=$DIR/installer.tar KUBELET=$DIR/the-kubelet
        export FLEXVOLUME_LVM_KUBERNETES=$VERSION
        $(plane_of_guest)
        as_root() { \"\$@\"; }; $(declare -f until_silent with_id)
        with_id /run/pid $DIR/kubelet-cases --test-threads=$CASES_AT_ONCE $(printf ' %q' "$@") 2>&1 |
            until_silent $((KUBELET_LIMIT - 300)) /run/pid | tee $DIR/$name.log
        cp /run/log/*.log $DIR/$name/
        sync -f $DIR/$name; cut_power"
    : > "$DIR/$name.log"
    mkdir -p "$DIR/$name"
    # A long one would not fit into the kernel's command line.
    echo "$command" > "$DIR/$name.sh"
    # It has no time to hand on a status: the results say how it went.
    boot "$DIR" "$KUBELET_LIMIT" ". $DIR/$name.sh" "$DIR/disk" || true
    grep -q '^test result: ok' "$DIR/$name.log" || {
        console "$BOOT_FILES"
        say "kubelet's last errors"
        grep -h '^E[0-9]' "$BOOT_FILES/kubelet.log" | cut -c-400 | tail -n 30 || true
        return 1
    }
}

# kubelet_parts PROGRAM…: puts all that a kubelet and its cases need into $DIR, and names in PROGRAMS
# where these programs of Kubernetes are.
kubelet_parts() {
    local tests
    [ -z "${SUITE:-}" ] || die "SUITE is for the guest's tests: a kubelet runs on this machine's files"
    need_tests_guest runc:runc
    UNPACKED=()
    need_unpacked containerd:containerd
    IN_GUEST+=("${UNPACKED[@]}")
    need_kubernetes "$@"
    tests=$(artifact --test kubelet)
    [ -n "$tests" ] || die "the tests with kubelet did not build"
    install "$tests" "$DIR/kubelet-cases"
    install "$DRIVER" "$DIR/lvm"
    # Wherever they are: the guest may not see that place.
    install "$PROGRAMS/kubelet" "$DIR/the-kubelet"
    pod_image "$DIR/pod.tar"
    truncate -s 6G "$DIR/disk" # for kubelet_guest
}

# keep_calls NAME FILE…: keeps the logs of a run.
keep_calls() {
    local kept=${CARGO_TARGET_DIR:-target}/$1
    shift
    rm -rf "$kept"
    mkdir -p "$kept"
    cp -r "$@" "$kept/"
    say "what was called: $kept has every call, in calls-of-CASE.log"
}

# A real kubelet drives the driver. The logs of the run are kept, with every call.
kubelet() {
    kubelet_parts kubelet
    need_newer_uml
    DRIVER=$DIR/lvm install/image.sh "$DIR/installer.tar"
    local name=kubelet-$VERSION
    say "$name: pods on the driver's volumes"
    step "$name" kubelet_guest kubelet --skip plane:: "$@"
    keep_calls "$name" "$DIR"/kubelet
    count "$name" "$DIR/kubelet.log"
}

# `kubelet` as a step among all others: with a directory of its own.
kubelets() {
    local DIR=$TOP/kubelet
    mkdir "$DIR"
    here kubelet
}
