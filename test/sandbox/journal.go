// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"net/http"
	"sync"
	"time"

	diskclient "github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// journal is the disk service's log as far as the observer has read it.
type journal struct {
	mu      sync.Mutex
	entries []diskapi.Entry
}

// retryDisk is the pause before the log of a disk service that does not answer
// (it may have been killed on purpose) is asked for again.
const retryDisk = 100 * time.Millisecond

// follow reads the disk service's log until ctx ends. The service holds each
// request until there is something new.
func (v *View) follow(ctx context.Context, service diskclient.Client) {
	service.HTTP = &http.Client{Transport: &http.Transport{}}
	var last uint64
	for ctx.Err() == nil {
		entries, err := service.WaitForN(ctx, last, diskapi.Filter{}, 1)
		if err == nil {
			// WaitForN stops at the first entry; what came with it is fetched
			// in one go.
			entries, err = service.Log(ctx, last, diskapi.Filter{})
		}
		if err != nil || len(entries) == 0 {
			select {
			case <-time.After(retryDisk):
			case <-ctx.Done():
			}
			continue
		}
		last = entries[len(entries)-1].Seq
		for _, e := range entries {
			v.recorder.call(e)
		}
		v.disk.mu.Lock()
		v.disk.entries = append(v.disk.entries, entries...)
		v.disk.mu.Unlock()
		v.signal()
	}
}

// Calls lists the entries of the disk service's log that match, oldest first.
func (v *View) Calls(filter diskapi.Filter) []diskapi.Entry {
	v.disk.mu.Lock()
	defer v.disk.mu.Unlock()
	var out []diskapi.Entry
	for _, e := range v.disk.entries {
		if filter.Matches(e) {
			out = append(out, e)
		}
	}
	return out
}
