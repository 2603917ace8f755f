// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/test/sandbox/internal/supervise"
)

const retryDelay = time.Second

func (r *Runtime) start(ctx context.Context, pod *corev1.Pod) (*running, error) {
	ctx, stop := context.WithCancel(ctx)
	p := &running{pod: pod, ip: fmt.Sprintf("127.%d.%d.%d", r.net[0], r.net[1], r.next), stop: stop}
	r.next++
	if len(pod.Spec.InitContainers) > 0 {
		stop()
		return nil, fmt.Errorf("it has init containers, which are not run here")
	}
	for i := range pod.Spec.Containers {
		spec, err := r.spec(p, &pod.Spec.Containers[i])
		if err == nil {
			err = r.launch(ctx, pod, spec)
		}
		if err != nil {
			stop()
			return nil, fmt.Errorf("container %s: %w", pod.Spec.Containers[i].Name, err)
		}
		if spec.Restart {
			p.names = append(p.names, spec.Name)
		}
	}
	return p, nil
}

func (r *Runtime) launch(ctx context.Context, pod *corev1.Pod, spec supervise.Spec) error {
	if spec.Restart {
		return r.procs.Launch(spec)
	}
	r.jobs.Go(func() {
		for ctx.Err() == nil {
			err := runOnce(ctx, spec)
			r.note("%s ended: %v", spec.Name, err)
			if err == nil || pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
				r.report(ctx, pod, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(retryDelay):
			}
		}
	})
	return nil
}

// report writes the end of a bare pod. Its kubelet, whose containers are no processes, says that it runs.
func (r *Runtime) report(ctx context.Context, pod *corev1.Pod, failure error) {
	if metav1.GetControllerOf(pod) != nil || len(pod.Spec.Containers) != 1 {
		return
	}
	phase := corev1.PodSucceeded
	if failure != nil {
		phase = corev1.PodFailed
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"phase":%q}}`, pod.UID, phase)
	_, err := r.config.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		r.note("pod %s is %s, which can't be written: %v", pod.Name, phase, err)
	}
}

func runOnce(ctx context.Context, spec supervise.Spec) error {
	log, err := os.OpenFile(spec.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, spec.Path, spec.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = spec.Dir, log, log
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Run()
}

func (r *Runtime) spec(p *running, container *corev1.Container) (supervise.Spec, error) {
	name := p.pod.Name + "-" + container.Name
	path, err := r.config.Binary(container.Image)
	if err != nil {
		return supervise.Spec{}, err
	}
	if len(container.Command) > 0 {
		return supervise.Spec{}, fmt.Errorf("it has a command of its own, %q: only the image's entrypoint is known here", container.Command)
	}
	dir := filepath.Join(r.config.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return supervise.Spec{}, err
	}
	mounts, err := r.mounts(p.pod, container)
	if err != nil {
		return supervise.Spec{}, err
	}
	env, expand, err := environment(p.pod, container)
	if err != nil {
		return supervise.Spec{}, err
	}
	args := make([]string, len(container.Args))
	for i, arg := range container.Args {
		args[i] = listen(mounts.translate(expand.Replace(arg)), p.ip, container.Ports)
	}
	if mounts.token != "" {
		if args, err = r.identify(args, mounts.token, dir, p.ip); err != nil {
			return supervise.Spec{}, err
		}
	}
	return supervise.Spec{
		Name: name, Path: path, Args: args, Env: append([]string{"TMPDIR=" + dir, "KUBECONFIG=", "HTTPS_PROXY=" + r.proxy}, env...), Dir: dir, LogPath: filepath.Join(r.config.Dir, name+".log"),
		Restart: p.pod.Spec.RestartPolicy == corev1.RestartPolicyAlways,
	}, nil
}

// environment uses the pod's address that its kubelet has told. The processes' real address is this
// machine's.
func environment(pod *corev1.Pod, container *corev1.Container) (env []string, expand *strings.Replacer, err error) {
	var references []string
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil {
			if from.FieldRef == nil || from.FieldRef.FieldPath != "status.podIP" || pod.Status.PodIP == "" {
				return nil, nil, fmt.Errorf("environment variable %s: only plain values and a pod's address are known here", variable.Name)
			}
			value = pod.Status.PodIP
		}
		env = append(env, variable.Name+"="+value)
		references = append(references, "$("+variable.Name+")", value)
	}
	return env, strings.NewReplacer(references...), nil
}

// listen gives a container's argument that ends in ":port" the pod's address.
func listen(arg, ip string, ports []corev1.ContainerPort) string {
	flag, port, ok := strings.Cut(arg, "=:")
	number, err := strconv.Atoi(port)
	if !ok || err != nil || !slices.ContainsFunc(ports, func(p corev1.ContainerPort) bool { return int(p.ContainerPort) == number }) {
		return arg
	}
	return flag + "=" + ip + ":" + port
}

func (r *Runtime) identify(args []string, token, dir, ip string) ([]string, error) {
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, r.config.APIServer, token); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
	if i < 0 {
		return append(args, "--kubeconfig="+kubeconfig), nil
	}
	raw, err := os.ReadFile(strings.TrimPrefix(args[i], "--config="))
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return nil, err
	}
	config["clientConnection"] = map[string]any{"kubeconfig": kubeconfig}
	if raw, err = yaml.Marshal(config); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "config.yaml")
	args[i] = "--config=" + file
	return append(args, "--bind-address="+ip, "--cert-dir="+dir), os.WriteFile(file, raw, 0o600)
}
