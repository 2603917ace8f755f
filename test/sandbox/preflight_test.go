// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fakeProc(t *testing.T, limit string, open int) string {
	t.Helper()
	proc := t.TempDir()
	for _, dir := range []string{"sys/fs/inotify", "42/fd"} {
		if err := os.MkdirAll(filepath.Join(proc, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(proc, "sys/fs/inotify/max_user_instances"), []byte(limit+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range open {
		if err := os.Symlink("anon_inode:inotify", filepath.Join(proc, "42/fd", string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestInotifyLimit(t *testing.T) {
	proc := fakeProc(t, "16", 3)
	if err := checkInotify(16-3-inotifyOther, proc, os.Getuid()); err != nil {
		t.Fatalf("as many nodes as fit are refused: %v", err)
	}
	err := checkInotify(16-3-inotifyOther+1, proc, os.Getuid())
	if err == nil || !strings.Contains(err.Error(), "fs.inotify.max_user_instances=") {
		t.Fatalf("one node too many: %v", err)
	}
	if err := checkInotify(16-inotifyOther, proc, os.Getuid()+1); err != nil {
		t.Fatalf("another user's instances count: %v", err)
	}
}

func TestNodesTakeAnAddressThatAKubeletAccepts(t *testing.T) {
	ip := func(s string) net.Addr { return &net.IPNet{IP: net.ParseIP(s), Mask: net.CIDRMask(8, 32)} }
	for name, c := range map[string]struct {
		addrs []net.Addr
		want  string
	}{
		"IPv4 first":   {[]net.Addr{ip("127.0.0.1"), ip("2001:db8::1"), ip("192.0.2.7"), ip("192.0.2.8")}, "192.0.2.7"},
		"IPv6 at need": {[]net.Addr{ip("127.0.0.1"), ip("::1"), ip("fe80::1"), ip("2001:db8::1")}, "2001:db8::1"},
		"none":         {[]net.Addr{ip("127.0.0.1"), ip("::1"), ip("fe80::1"), ip("169.254.1.1")}, "<nil>"},
	} {
		if got := usableAddress(c.addrs).String(); got != c.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestMissingCgroup(t *testing.T) {
	if err := checkCgroup(filepath.Join(t.TempDir(), "cgroup")); err == nil || !strings.Contains(err.Error(), "mount") {
		t.Fatalf("got %v", err)
	}
}
