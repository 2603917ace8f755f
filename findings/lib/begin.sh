# SPDX-License-Identifier: Apache-2.0
#
# What the findings with disks share: a temporary folder, packages that are unpacked into it, loop devices, and a
# program that calls k8s.io/mount-utils as a CSI node plugin does. Everything is taken away at the end.
#
# A finding needs root, loop devices, a Go toolchain, and network to Debian's and Go's package servers.
# Exit 0: seen again. Exit 1: something else was seen. Exit 2: it can't run here.
set -euo pipefail

cant() { echo "$1" >&2; exit 2; }
changed() { echo "changed: $1" >&2; exit 1; }

[ "$(id -u)" = 0 ] && [ -e /dev/loop-control ] || cant "needs root and loop devices"
for tool in go apt-get dpkg-deb losetup mount fsck; do
  command -v "$tool" >/dev/null || cant "needs $tool"
done

dir=$(mktemp -d)
devices=()
cleanup() {
  local at device
  # A device that is mounted is free after its last unmount.
  for device in "${devices[@]}"; do losetup --detach "$device" 2>/dev/null || true; done
  for at in $(awk -v dir="$dir/" 'index($5, dir) == 1 {print $5}' /proc/self/mountinfo | tac); do umount "$at" || true; done
  rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir"

# unpack PACKAGE=VERSION... has programs and libraries of Debian packages found first.
unpack() {
  local library
  (
    mkdir debs && cd debs
    apt-get -qq -o APT::Sandbox::User=root download "$@"
    for deb in *.deb; do dpkg-deb --extract "$deb" ../root; done
  ) || cant "the packages can't be had: this is written for Debian 12"
  for library in $(find root -type d -path '*lib/*-linux-gnu'); do
    LD_LIBRARY_PATH=$dir/$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  done
  export LD_LIBRARY_PATH PATH=$dir/root/sbin:$dir/root/usr/sbin:$dir/root/usr/bin:$PATH
}
e2fsprogs="e2fsprogs=1.47.0-2+b2 libext2fs2=1.47.0-2+b2 libss2=1.47.0-2+b2 libcom-err2=1.47.0-2+b2"
xfsprogs="xfsprogs=6.1.0-1 libinih1=55-1 liburcu8=0.13.2-1"

# attach FILE [OPTION...] sets device to a loop device over a file.
attach() {
  device=$(losetup --find --show "${@:2}" "$1")
  devices+=("$device")
}

# plugin stage DEVICE PATH TYPE is FormatAndMount, plugin grow DEVICE PATH is ResizeFs, plugin refs PATH is GetMountRefs.
build_plugin() {
  cat >go.mod <<'END'
module example.com/plugin

go 1.26

require (
	k8s.io/mount-utils v0.37.1
	k8s.io/utils v0.0.0-20260626114624-be93311217bd
)
END
  cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

func main() {
	m := mount.NewSafeFormatAndMount(mount.New(""), exec.New())
	var err error
	switch args := os.Args[2:]; os.Args[1] {
	case "stage":
		err = m.FormatAndMount(args[0], args[1], args[2], args[3:])
	case "grow":
		_, err = mount.NewResizeFs(m.Exec).Resize(args[0], args[1])
	case "refs":
		_, err = m.GetMountRefs(args[0])
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
END
  go mod tidy >/dev/null 2>&1 || cant "the modules can't be had"
  go build -o plugin .
}
plugin() { ./plugin "$@" 2>/dev/null | tr '\n' ' '; }
