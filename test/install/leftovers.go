// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func (s *story) leftovers(ctx context.Context) error {
	const other = "other"
	if err := s.handDefinitionsOver(ctx, other); err != nil {
		return err
	}
	values := []string{"--set", "image.registry=" + registry + ",image.tag=" + neverPulled}
	if _, err := s.helmCommand(ctx, append([]string{"install", other, s.chart, "--namespace", namespace}, values...)...); err != nil {
		return err
	}
	if _, err := s.helmCommand(ctx, "uninstall", other, "--namespace", namespace); err != nil {
		return err
	}
	if err := until(ctx, "nothing is left of the other release", s.nothingLeft); err != nil {
		return err
	}
	return s.handDefinitionsOver(ctx, release)
}

func (s *story) handDefinitionsOver(ctx context.Context, name string) error {
	install := []string{"install", name, s.chart, "--namespace", namespace, "--set", "image.registry=" + registry, "--dry-run=server"}
	_, refused := s.helmCommand(ctx, install...)
	if refused == nil {
		return fmt.Errorf("release %s is installed over the definitions of another one", name)
	}
	_, command, _ := strings.Cut(refused.Error(), "kubectl annotate")
	command, _, found := strings.Cut(command, "\n")
	if !found {
		return fmt.Errorf("helm prints no command: %w", refused)
	}
	env, err := s.reader(ctx)
	if err != nil {
		return err
	}
	if out, err := s.execute(ctx, env, "sh", "-euc", "kubectl annotate"+command); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	_, err = s.helmCommand(ctx, install...)
	return err
}

// applied applies the templates as users without helm do: a second time changes nothing.
func (s *story) applied(ctx context.Context) error {
	render := func(file string, more ...string) (string, error) {
		text, err := s.helmCommand(ctx, append([]string{"template", release, s.chart, "--namespace", namespace, "--no-hooks",
			"--set", "image.registry=" + registry + ",certManager.enabled=false,node.enabled=true,networkPolicy.apiServer.ports={443,6443}"}, more...)...)
		file = filepath.Join(s.dir, file)
		return file, errors.Join(err, os.WriteFile(file, []byte(text), 0o600))
	}
	file, err := render("applied.yaml")
	if err != nil {
		return err
	}
	env, err := s.reader(ctx)
	if err != nil {
		return err
	}
	kubectl := func(args ...string) (string, error) {
		return s.execute(ctx, env, filepath.Join(s.binaries, "kubectl"), args...)
	}
	if _, err := kubectl("apply", "-f", file); err != nil {
		return err
	}
	if err := s.awaitMoorage(ctx); err != nil {
		return err
	}
	if out, err := kubectl("diff", "-f", file); err != nil {
		return fmt.Errorf("what is there differs from what was applied: %w\n%s", err, out)
	}
	// kubectl sends patches that change nothing: the generations show real changes.
	const generations = `jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.generation}{"\n"}{end}`
	before, err := kubectl("get", "-f", file, "-o", generations)
	if err != nil {
		return err
	}
	if _, err := kubectl("apply", "-f", file); err != nil {
		return err
	}
	after, err := kubectl("get", "-f", file, "-o", generations)
	if err == nil && after != before {
		err = fmt.Errorf("it is applied again, and generations change from\n%s\nto\n%s", before, after)
	}
	if err != nil {
		return err
	}
	// The definitions stay for later releases.
	if file, err = render("taken-away.yaml", "--set", "crds.enabled=false"); err != nil {
		return err
	}
	if _, err := kubectl("delete", "-f", file); err != nil {
		return err
	}
	return until(ctx, "nothing is left of it", s.nothingLeft)
}
