// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/controller/attacher/objects"
)

type reply struct {
	code    codes.Code
	message string
	context map[string]string
	hold    bool // answers only on command
	silent  bool // acts, though the answer is an error
	idle    bool // does nothing, though the answer is ok
}

// fakeDriver answers as scripted, else with success. Only calls on hold run in parallel.
type fakeDriver struct {
	write     func(line string) // to the transcript
	replies   map[string][]reply
	published map[string][]string
	held      chan<- struct{}       // tells that a call waits
	answers   map[string]chan reply // of calls on hold
}

func (r reply) acts(err error) bool { return (err == nil || r.silent) && !r.idle }

func (d *fakeDriver) Publish(ctx context.Context, call objects.Call, nodeID string, secrets map[string]string) (map[string]string, error) {
	line := fmt.Sprintf("publish %s %s %s", call.Handle, nodeID, strings.ToLower(call.Capability.GetAccessMode().GetMode().String()))
	if call.ReadOnly {
		line += " readonly"
	}
	r, err := d.answer(ctx, "publish", line+pairs(" context", call.Context)+secretKeys(secrets)+migratedMark(call))
	if r.acts(err) && !slices.Contains(d.published[call.Handle], nodeID) {
		d.published[call.Handle] = append(d.published[call.Handle], nodeID)
	}
	return r.context, err
}

func (d *fakeDriver) Unpublish(ctx context.Context, call objects.Call, nodeID string, secrets map[string]string) error {
	r, err := d.answer(ctx, "unpublish", fmt.Sprintf("unpublish %s %s", call.Handle, nodeID)+secretKeys(secrets)+migratedMark(call))
	if r.acts(err) {
		d.published[call.Handle] = slices.DeleteFunc(d.published[call.Handle], func(n string) bool { return n == nodeID })
	}
	return err
}

func (d *fakeDriver) Published(ctx context.Context, handle, nodeID string) (bool, error) {
	_, err := d.answer(ctx, "look", fmt.Sprintf("look %s", handle))
	return slices.Contains(d.published[handle], nodeID), err
}

func (d *fakeDriver) List(ctx context.Context) (map[string][]string, error) {
	_, err := d.answer(ctx, "list", "list")
	return d.published, err
}

func (d *fakeDriver) answer(ctx context.Context, call, line string) (reply, error) {
	var r reply
	if queue := d.replies[call]; len(queue) > 0 {
		r, d.replies[call] = queue[0], queue[1:]
	}
	if r.hold {
		d.write(line + " …")
		answered := make(chan reply)
		d.answers[call] = answered
		d.held <- struct{}{}
		select {
		case r = <-answered:
		case <-ctx.Done():
			r = reply{code: codes.DeadlineExceeded, message: ctx.Err().Error()}
		}
		line = "… " + line
	}
	if r.code == codes.OK {
		d.write(line)
		return r, nil
	}
	d.write(line + " -> " + r.code.String())
	return r, status.Error(r.code, r.message)
}

func secretKeys(secrets map[string]string) string {
	if secrets == nil {
		return ""
	}
	return " secrets=" + strings.Join(sortedKeys(secrets), ",")
}

func migratedMark(call objects.Call) string {
	if call.Migrated {
		return " migrated"
	}
	return ""
}
