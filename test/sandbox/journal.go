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

type journal struct {
	mu      sync.Mutex
	entries []diskapi.Entry
}

// retryDisk is the pause after a failure of the disk service, which may have been killed on purpose.
const retryDisk = 100 * time.Millisecond

func (v *View) follow(ctx context.Context, service diskclient.Client) {
	service.HTTP = &http.Client{Transport: &http.Transport{}}
	var last uint64
	for ctx.Err() == nil {
		entries, err := service.WaitForN(ctx, last, diskapi.Filter{}, 1)
		if err == nil {
			// WaitForN stops at the first entry: fetch the rest at once.
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
