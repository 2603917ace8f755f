// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/node/result"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

const (
	account  = "moorage-node"
	user     = "system:serviceaccount:" + sandbox.MoorageNamespace + ":" + account
	patience = 2 * time.Minute
	// The aftermath of a start is not rest.
	settles = 15 * time.Second
)

type load struct {
	binary  string
	cases   []size
	rest    time.Duration
	changes int
}

type size struct{ volumes, pods int }

func (l load) scenario(into *result.Result) sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "bench-node",
		Doc:   "moorage-node at rest, and when mounts change",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Shape: func(shape *sandbox.Shape) {
			*shape = sandbox.Shape{Mode: sandbox.Standalone, Nodes: len(l.cases), Slots: 128, KubeletStatusInterval: 10 * time.Second}
		},
		Exclusive: true,
		Timeout:   time.Duration(len(l.cases)) * (l.rest + settles + time.Duration(l.changes+1)*patience),
		Run: func(ctx context.Context, e *sandbox.Env) error {
			for i, c := range l.cases {
				e.Log("%d volumes, %d pods", c.volumes, c.pods)
				run, err := l.measure(ctx, e, sandbox.NodeName(i+1), c)
				if err != nil {
					return err
				}
				into.Runs = append(into.Runs, run)
			}
			return nil
		},
	}
}

func (l load) measure(ctx context.Context, e *sandbox.Env, node string, c size) (run result.Run, err error) {
	m, err := newMounts()
	if err != nil {
		return run, err
	}
	defer m.close()
	folder, err := filepath.EvalSymlinks(e.Cluster.Dir())
	if err != nil {
		return run, fmt.Errorf("the cluster's folder: %w", err)
	}
	folder = filepath.Join(folder, "measured-"+node)
	k, err := newKubelet(filepath.Join(folder, "kubelet"), m, c.pods, c.volumes)
	if err != nil {
		return run, err
	}
	t, err := newTold(ctx, e, node)
	if err != nil {
		return run, err
	}
	defer t.watch.Stop()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(ctx, e, node, kubeconfig); err != nil {
		return run, err
	}
	began := time.Now()
	p, err := startProcess(m, l.binary, kubeconfig, k.root, filepath.Join(folder, "moorage-node.log"))
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	if err := t.until(ctx, func(s v1alpha1.NodeMountReportStatus) error { return whole(s, c) }); err != nil {
		return run, err
	}
	run = result.Run{Volumes: c.volumes, Pods: c.pods, Mounts: 2*c.volumes + c.pods, ToldSeconds: time.Since(began).Seconds()}
	if err := p.rests(ctx, settles); err != nil {
		return run, err
	}
	if run.Rest, err = l.measureRest(ctx, e, p); err != nil {
		return run, err
	}
	run.Changes, err = l.measureChanges(ctx, e, p, k, t)
	return run, err
}

func whole(s v1alpha1.NodeMountReportStatus, c size) error {
	published := 0
	for _, v := range s.Volumes {
		published += len(v.Published)
	}
	switch {
	case s.Observed == nil:
		return errors.New("it has not looked")
	case len(s.Unknown) > 0 || s.Summary.Forgotten > 0 || s.Summary.Unknown > 0:
		return fmt.Errorf("of %d volumes %d are forgotten; unknown: %q", len(s.Volumes), s.Summary.Forgotten, s.Unknown)
	case len(s.Volumes) != c.volumes || published != c.volumes:
		return fmt.Errorf("it names %d volumes, and %d of pods, where %d are", len(s.Volumes), published, c.volumes)
	}
	return nil
}

func (l load) measureRest(ctx context.Context, e *sandbox.Env, p *process) (r result.Rest, err error) {
	from := time.Now()
	r.CPUSeconds, err = p.using(func() error { return p.rests(ctx, l.rest) })
	if err != nil {
		return r, err
	}
	r.Seconds = time.Since(from).Seconds()
	if r.Memory, err = readMemory(p.pid()); err != nil {
		return r, err
	}
	r.Requests, err = requests(e, from)
	return r, err
}

func (l load) measureChanges(ctx context.Context, e *sandbox.Env, p *process, k *kubelet, t *told) (c result.Changes, err error) {
	from := time.Now()
	const volume, pod = 1 << 20, 1 << 20 // not among the present ones
	c.CPUSeconds, err = p.using(func() error {
		for range l.changes {
			for _, change := range []struct {
				do    func(volume, pod int) error
				there bool
			}{{k.mount, true}, {k.unmount, false}} {
				began := time.Now()
				if err := change.do(volume, pod); err != nil {
					return err
				}
				if err := t.until(ctx, func(s v1alpha1.NodeMountReportStatus) error { return names(s, handle(volume), change.there) }); err != nil {
					return err
				}
				c.Seconds = append(c.Seconds, time.Since(began).Seconds())
			}
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	c.Requests, err = requests(e, from)
	return c, err
}

func names(s v1alpha1.NodeMountReportStatus, handle string, there bool) error {
	for _, v := range s.Volumes {
		if v.Handle != handle {
			continue
		}
		if there && v.Mounted == v1alpha1.NodeYes && len(v.Published) == 1 && v.Published[0].Mounted == v1alpha1.NodeYes {
			return nil
		}
		return fmt.Errorf("it names the volume: %+v", v)
	}
	if there {
		return errors.New("it does not name the volume")
	}
	return nil
}

func (p *process) using(meanwhile func() error) (float64, error) {
	before, err := bench.ProcessSeconds(p.pid())
	if err != nil {
		return 0, err
	}
	if err := meanwhile(); err != nil {
		return 0, err
	}
	after, err := bench.ProcessSeconds(p.pid())
	return after - before, err
}

func requests(e *sandbox.Env, from time.Time) (result.Requests, error) {
	events, err := e.Audit.Read()
	if err != nil {
		return result.Requests{}, err
	}
	return count(events, from), nil
}

func count(events []audit.Event, from time.Time) (r result.Requests) {
	for _, event := range events {
		if event.User.Username != user || event.Stage != "ResponseComplete" || event.Finished.Before(from) {
			continue
		}
		switch event.Verb {
		case "watch":
			r.Watches++
		case "get", "list":
			r.Reads++
		default:
			r.Writes++
		}
	}
	return r
}

// With a token for the Node, as the API server makes it for a pod there.
func writeKubeconfig(ctx context.Context, e *sandbox.Env, node, path string) error {
	token, err := e.Cluster.NodeToken(ctx, node)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("kubeconfig of moorage-node: %w", err)
	}
	config := e.Cluster.RESTConfig()
	return sandbox.WriteKubeconfig(path, config.Host, config.CAData, token)
}

// told is for serial use.
type told struct{ watch watch.Interface }

func newTold(ctx context.Context, e *sandbox.Env, node string) (*told, error) {
	clients, err := client.NewForConfig(e.Cluster.RESTConfig())
	if err != nil {
		return nil, err
	}
	w, err := clients.NodeMountReports().Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", node).String()})
	if err != nil {
		return nil, fmt.Errorf("watch NodeMountReport %s: %w", node, err)
	}
	return &told{w}, nil
}

func (t *told) until(ctx context.Context, check func(v1alpha1.NodeMountReportStatus) error) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	last := errors.New("it has said nothing since")
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			return fmt.Errorf("what moorage-node says is wrong for %s: %w", patience, last)
		case event, open := <-t.watch.ResultChan():
			if !open {
				return errors.New("the watch of NodeMountReports ended")
			}
			if own, ok := event.Object.(*v1alpha1.NodeMountReport); ok {
				if last = check(own.Status); last == nil {
					return nil
				}
			}
		}
	}
}
