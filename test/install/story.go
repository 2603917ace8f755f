// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/test/install/commands"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/pods"
)

const (
	release   = "moorage"
	namespace = sandbox.MoorageNamespace
	registry  = "registry.example.com"
)

// story is the cluster and its users. Its methods are serial.
type story struct {
	config
	dir                      string
	chart, version, registry string
	pulled                   map[string]string
	keep                     bool // keep the folder for reading
	runner                   *sandbox.Runner
	cluster                  *sandbox.Cluster
	client                   kubernetes.Interface
	dynamic                  dynamic.Interface
	pods                     *lazyPods
	audit                    *audit.Reader
	documented               []commands.Command
	ran                      map[string]bool
	goes                     []string
	// handedBack: the attach/detach controller runs; launched: it has run.
	handedBack, launched bool
	upgraded             time.Time
	attacked             attacked
	workload             *workload
	end                  []func()
}

type lazyPods struct {
	*pods.Runtime
	started chan struct{}
}

func (l *lazyPods) Failed() <-chan struct{} {
	select {
	case <-l.started:
		return l.Runtime.Failed()
	default:
		return nil
	}
}

func newStory(c config) (*story, error) {
	documented, err := readPages(c.repository)
	if err != nil {
		return nil, fmt.Errorf("commands of the documentation: %w", err)
	}
	dir, err := os.MkdirTemp("", "moorage-install-")
	if err != nil {
		return nil, fmt.Errorf("folder of the test: %w", err)
	}
	return &story{
		config: c, dir: dir, pods: &lazyPods{started: make(chan struct{})}, documented: documented, ran: map[string]bool{}, pulled: map[string]string{},
	}, nil
}

func (s *story) chapters() []chapter {
	out := []chapter{
		{"a cluster with cert-manager, and the chart of commit e9c19f87", s.begin},
		{"tickets alive", s.makeTickets},
		{"upgrade", s.upgrade},
		{"helm test", s.helmTest},
		{"certificates are renewed", s.renewCertificates},
	}
	for _, name := range []string{"path", "rollout", "limit", "handover"} {
		out = append(out, chapter{"scenario " + name, func(ctx context.Context) error { return s.scenario(ctx, name) }})
	}
	out = append(out,
		chapter{"every process is killed at once, in Standalone mode", func(ctx context.Context) error { return s.allKilled(ctx, "Standalone") }},
		chapter{"alerts and dashboard ask for what is measured", s.metrics},
		chapter{"metrics behind TLS and the API server's word", s.secureMetrics},
		chapter{"every variant", s.variants},
		chapter{"what the pages say of a namespace", s.pagesOnUse},
		chapter{"what the pages say of upgrades", s.pagesOnUpgrades},
		chapter{"policies", s.policies},
		chapter{"people's rights", s.peoplesRights},
		chapter{"no call was denied, and every right was used", s.rights},
		chapter{"what is off by default is turned on", func(ctx context.Context) error { return s.openDoors(ctx, true) }},
		chapter{"attacks", s.attacks},
		chapter{"and off again", func(ctx context.Context) error { return errors.Join(s.openDoors(ctx, false), s.survived(ctx)) }},
		chapter{"attacks with the policies off", s.attacksWithoutPolicies},
		chapter{"a namespace is switched off", s.switchOff},
		chapter{"uninstall", s.uninstall},
		chapter{"attach and detach are handed back", s.handBack},
		chapter{"what is applied stays as it is", s.applied},
		chapter{"the defaults change nothing for those who did not opt in", s.harmless},
	)
	for _, name := range []string{"rollout", "limit", "handover"} {
		out = append(out, chapter{"scenario " + name + ", with the chart's defaults", func(ctx context.Context) error { return s.scenario(ctx, name) }})
	}
	return append(out,
		chapter{"every process is killed at once, in Cooperative mode", func(ctx context.Context) error { return s.allKilled(ctx, "Cooperative") }},
		chapter{"Cooperative, beside the attach/detach controller", s.cooperative},
		chapter{"a Standalone controller that never starts", s.neverStarts},
		chapter{"another release's definitions are handed over", s.leftovers},
		chapter{"quick start, and certificates of its own from then on", s.quickStart},
		chapter{"certificates without cert-manager", s.ownCertificates},
		chapter{"nothing is left", s.forget},
		chapter{"every command of the documentation was run", s.allRan},
	)
}

// The runner's mode only names the cluster, and excuses no violation.
func (s *story) scenario(ctx context.Context, name string) error {
	for _, scenario := range s.scenarios {
		if scenario.Name != name {
			continue
		}
		result := s.runner.Run(ctx, scenario, sandbox.Standalone)
		if !result.Passed {
			fmt.Fprintln(os.Stderr, result.Diagnosis)
			return errors.New(result.Error)
		}
		return nil
	}
	return fmt.Errorf("there is no scenario %s", name)
}

func (s *story) helmTest(ctx context.Context) error {
	if err := s.run(ctx, stepTest, nil); err != nil {
		return err
	}
	return until(ctx, "nothing is left of helm test", func(ctx context.Context) error {
		pods, err := s.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=test"})
		if err != nil {
			return err
		}
		_, err = s.client.RbacV1().ClusterRoles().Get(ctx, "moorage-test", metav1.GetOptions{})
		if len(pods.Items) > 0 || !apierrors.IsNotFound(err) {
			return fmt.Errorf("%d pods; the ClusterRole is gone: %t", len(pods.Items), apierrors.IsNotFound(err))
		}
		return nil
	})
}

func (s *story) helmCommand(ctx context.Context, args ...string) (string, error) {
	command := strings.Fields(s.helm)
	env := []string{"KUBECONFIG=" + s.cluster.Kubeconfig()}
	for _, name := range []string{"CACHE", "CONFIG", "DATA"} {
		env = append(env, "HELM_"+name+"_HOME="+filepath.Join(s.dir, "helm"))
	}
	return s.execute(ctx, env, command[0], append(command[1:], s.plain(args)...)...)
}

// until polls, for facts that the sandbox's view lacks.
func until(ctx context.Context, what string, check func(context.Context) error) error {
	return untilWithin(ctx, sandbox.Patience, what, check)
}

func untilWithin(ctx context.Context, patience time.Duration, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	var last error
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err == nil || ctx.Err() == nil {
			last = err
		}
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
			return false, err // it will not do better
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), last))
	}
	return nil
}

func (s *story) later(do func()) { s.end = append(s.end, do) }

func (s *story) keepLogs() {
	s.keep = true
	if s.cluster != nil {
		s.cluster.KeepLogs()
		fmt.Fprintln(os.Stderr, "logs of the cluster:", filepath.Join(s.cluster.Dir(), "logs"))
	}
	fmt.Fprintln(os.Stderr, "logs of the chart's processes:", s.dir)
}

func (s *story) close() error {
	var once sync.Once
	for i := len(s.end) - 1; i >= 0; i-- {
		s.end[i]()
	}
	var errs []error
	once.Do(func() {
		if s.runner != nil {
			errs = append(errs, s.runner.Close())
		}
	})
	if !s.keep {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
