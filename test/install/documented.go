// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/moorage-dev/moorage/test/install/commands"
)

const (
	stepFromOlder       = "upgrade-from-e9c19f87"
	stepTest            = "test"
	stepCLI             = "cli"
	stepEnable          = "enable"
	stepTickets         = "tickets"
	stepLook            = "look"
	stepUpgrade         = "upgrade"
	stepMonitoring      = "monitoring"
	stepRollback        = "rollback"
	stepSwitchOff       = "switch-off"
	stepUninstall       = "uninstall"
	stepCooperative     = "install-cooperative"
	stepToStandalone    = "to-standalone"
	stepToCooperative   = "to-cooperative"
	stepHandOver        = "hand-over"
	stepInstall         = "install"
	stepOwnCertificates = "to-own-certificates"
	stepRenewNow        = "renew-now"
	stepToCertManager   = "to-cert-manager"
	stepForget          = "forget"
)

func steps() []string {
	return []string{
		stepFromOlder, stepTest, stepCLI, stepEnable, stepTickets, stepLook, stepUpgrade, stepMonitoring, stepRollback, stepSwitchOff, stepUninstall,
		stepCooperative, stepToStandalone, stepToCooperative, stepHandOver, stepInstall, stepOwnCertificates, stepRenewNow, stepToCertManager, stepForget,
	}
}

// byHand has the reason for each command that no test runs; at most mostByHand. docs/internals/scenarios.md
// lists them.
func byHand() map[string]string {
	return map[string]string{
		`kubectl --namespace moorage-system logs deployment/moorage-controller | grep "invariant is broken"`: "a container runtime",
		`kubectl --namespace moorage-system logs deployment/moorage-webhook`:                                 "a container runtime",
		`kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute`:                   "a machine that is off; scenario `node-failure` sets the same taint",
		`kubectl taint node NODE node.kubernetes.io/out-of-service-`:                                         "a machine that is back",
		`kubectl moorage web`:                                                                             "a browser; `make test-web` opens the page in one",
		`kubectl moorage web --open=false --port 8080`:                                                    "a browser at the other end of a tunnel",
		`kubectl rollout restart statefulset --namespace NAMESPACE`:                                       "StatefulSets whose pods run",
		`kubectl wait --for=condition=Satisfied volumeticket/nightly --namespace shop --timeout=5m`:       "a ticket for a claim of yours",
		`kubectl moorage ticket make nightly --namespace shop --type Backup --node worker-1 --claim data`: "a claim of yours, and a node",
		`kubectl patch volumeattachment NAME --type=merge -p '{"metadata":{"finalizers":null}}'`:          "a driver that is gone for good",
		`kubectl get networkfences -l app.kubernetes.io/managed-by=moorage`:                               "csi-addons",
	}
}

const mostByHand = 11

func pageFiles(repository string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(repository, "docs/operate/*.md"))
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there are no pages in %s/docs/operate", repository))
	}
	for _, name := range []string{"README.md", "docs/kubectl.md", "docs/reasons.md", "docs/truth-check.md"} {
		files = append(files, filepath.Join(repository, name))
	}
	return files, nil
}

func readPages(repository string) ([]commands.Command, error) {
	files, err := pageFiles(repository)
	if err != nil {
		return nil, err
	}
	var list []commands.Command
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(repository, file)
		if err != nil {
			return nil, err
		}
		found, err := commands.Read(name, string(text))
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

func (s *story) run(ctx context.Context, step string, names map[string]string) error {
	list := commands.InStep(s.documented, step)
	if len(list) == 0 {
		return fmt.Errorf("no page has a command for step %s", step)
	}
	env, err := s.reader(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range list {
		text, err := c.With(names)
		if err != nil {
			return err
		}
		fmt.Printf("     $ %s\n", text)
		out, err := s.execute(ctx, env, "sh", "-euc", text)
		if err != nil {
			err = fmt.Errorf("%s: %w\n%s", c, err, out)
		}
		errs = append(errs, err, c.Printed(out))
	}
	s.ran[step] = true
	return errors.Join(errs...)
}

func (s *story) reader(ctx context.Context) ([]string, error) {
	tools, home := filepath.Join(s.dir, "tools"), filepath.Join(s.dir, "home")
	local := filepath.Join(home, ".local/bin")
	kubeconfig := filepath.Join(s.dir, "reader.kubeconfig")
	env := []string{"HOME=" + home, "KUBECONFIG=" + kubeconfig, "PATH=" + strings.Join([]string{tools, local, os.Getenv("PATH")}, ":")}
	if _, err := os.Stat(tools); err == nil {
		return append(env, s.goes...), nil
	}
	for _, folder := range []string{tools, local} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	// go keeps its settings and caches below $HOME by default.
	for _, name := range []string{"GOCACHE", "GOENV", "GOMODCACHE", "GOPATH"} {
		value, err := s.execute(ctx, nil, "go", "env", name)
		if err != nil {
			return nil, err
		}
		s.goes = append(s.goes, name+"="+strings.TrimSpace(value))
	}
	config, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.Contexts[config.CurrentContext].Namespace = "shop"
	return append(env, s.goes...), errors.Join(
		clientcmd.WriteToFile(*config, kubeconfig),
		os.Symlink(filepath.Join(s.binaries, "kubectl"), filepath.Join(tools, "kubectl")),
		os.WriteFile(filepath.Join(tools, "helm"), []byte(s.helmScript()), 0o755),
	)
}

func (s *story) allRan(context.Context) error {
	var left []string
	for _, step := range steps() {
		if !s.ran[step] {
			left = append(left, step)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("commands of the documentation were not run, in steps %v", left)
	}
	return nil
}
