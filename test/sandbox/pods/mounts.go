// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount"

const kubeletFolder = "/var/lib/kubelet"

type mounts struct {
	paths map[string]string
	token string // the folder of the service account's token; empty without one
}

func (r *Runtime) mounts(pod *corev1.Pod, container *corev1.Container) (mounts, error) {
	out := mounts{paths: map[string]string{}}
	root := filepath.Join(r.config.NodeDir(pod.Spec.NodeName), "pods", string(pod.UID), "volumes")
	for _, mount := range container.VolumeMounts {
		path := ""
		for i := range pod.Spec.Volumes {
			volume := &pod.Spec.Volumes[i]
			switch {
			case volume.Name != mount.Name:
			case volume.HostPath == nil:
				path = filepath.Join(root, plugin(volume), volume.Name, mount.SubPath)
			case volume.HostPath.Path == kubeletFolder:
				path = r.config.NodeDir(pod.Spec.NodeName)
			default:
				return mounts{}, fmt.Errorf("volume %s is the host's %s: only %s is known here", volume.Name, volume.HostPath.Path, kubeletFolder)
			}
		}
		if _, err := os.Stat(path); err != nil {
			return mounts{}, fmt.Errorf("the kubelet has not filled volume %s: %w", mount.Name, err)
		}
		if mount.MountPath == tokenMount {
			out.token = path
			continue
		}
		out.paths[mount.MountPath] = path
	}
	return out, nil
}

func plugin(volume *corev1.Volume) string {
	switch {
	case volume.Secret != nil:
		return "kubernetes.io~secret"
	case volume.ConfigMap != nil:
		return "kubernetes.io~configmap"
	case volume.Projected != nil:
		return "kubernetes.io~projected"
	}
	return "kubernetes.io~empty-dir"
}

func (m mounts) translate(arg string) string {
	out, longest := arg, 0
	for inside, outside := range m.paths {
		before, after, ok := strings.Cut(arg, inside)
		ok = ok && (after == "" || strings.HasPrefix(after, "/"))
		if ok && len(inside) > longest && (before == "" || strings.HasSuffix(before, "=")) {
			out, longest = before+outside+after, len(inside)
		}
	}
	return out
}

// The token and the authority are read again when they change.
func writeKubeconfig(path, url, token string) error {
	const name = "pod"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthority: filepath.Join(token, "ca.crt")}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: filepath.Join(token, "token")}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	_, err := os.Stat(filepath.Join(token, "token"))
	if err = errors.Join(err, clientcmd.WriteToFile(*config, path)); err != nil {
		return fmt.Errorf("kubeconfig of a pod: %w", err)
	}
	return nil
}
