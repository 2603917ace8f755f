// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moorage-dev/moorage/internal/nodemounts"
)

const (
	driver     = "disk.example.com"
	recordName = "vol_data.json"
)

type kubelet struct {
	root   string
	mounts *mounts
}

func newKubelet(root string, m *mounts, pods, volumes int) (*kubelet, error) {
	k := &kubelet{root: root, mounts: m}
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "pods"), 0o750), m.share(root)); err != nil {
		return nil, fmt.Errorf("the kubelet's folder: %w", err)
	}
	for i := range pods {
		token := filepath.Join(k.pod(i), "volumes", "kubernetes.io~projected", fmt.Sprintf("kube-api-access-%05d", i))
		if err := k.mounts.tmpfs(token); err != nil {
			return nil, err
		}
	}
	for i := range volumes {
		if err := k.mount(i, i%pods); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *kubelet) pod(i int) string {
	return filepath.Join(k.root, "pods", fmt.Sprintf("6c1b6d8e-93c1-4b1f-8a55-%012d", i))
}

func handle(volume int) string { return fmt.Sprintf("vol-%017x", volume) }

func persistentVolume(volume int) string {
	return fmt.Sprintf("pvc-0a7bd1f2-55f8-4c0f-9d1e-%012d", volume)
}

func (k *kubelet) staged(volume int) string {
	return filepath.Join(k.root, nodemounts.StagingPath(driver, handle(volume)))
}

func (k *kubelet) published(volume, pod int) string {
	return filepath.Join(k.pod(pod), "volumes", "kubernetes.io~csi", persistentVolume(volume), "mount")
}

func (k *kubelet) mount(volume, pod int) error {
	staged, published := k.staged(volume), k.published(volume, pod)
	if err := k.record(filepath.Dir(staged), map[string]string{"driverName": driver, "volumeHandle": handle(volume)}); err != nil {
		return err
	}
	if err := k.mounts.tmpfs(staged); err != nil {
		return err
	}
	if err := k.record(filepath.Dir(published), map[string]string{
		"attachmentID": "csi-" + handle(volume), "driverName": driver, "nodeName": "measured",
		"specVolID": persistentVolume(volume), "volumeHandle": handle(volume), "volumeLifecycleMode": "Persistent",
	}); err != nil {
		return err
	}
	return k.mounts.bind(staged, published)
}

func (k *kubelet) unmount(volume, pod int) error {
	for _, path := range []string{k.published(volume, pod), k.staged(volume)} {
		if err := k.mounts.unmount(path); err != nil {
			return err
		}
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			return fmt.Errorf("the kubelet's folder: %w", err)
		}
	}
	return nil
}

// Kubelets write the record before they call the driver.
func (k *kubelet) record(folder string, fields map[string]string) error {
	text, err := json.Marshal(fields)
	if err == nil {
		err = os.MkdirAll(folder, 0o750)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, recordName), append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("the kubelet's folder: %w", err)
	}
	return nil
}
