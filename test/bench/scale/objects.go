// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/test/bench/scale/hollow"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	workloadNamespace  = "workloads"
	bystanderNamespace = "bystanders"
	bystanderPrefix    = "bystander-"
)

func isBystander(name string) bool { return strings.HasPrefix(name, bystanderPrefix) }

const abreast = 40

func each(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var done sync.WaitGroup
	for range min(abreast, n) {
		done.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	done.Wait()
	return context.Cause(ctx)
}

type maker struct {
	kube     kubernetes.Interface
	disk     client.Client
	enforced bool

	mu      sync.Mutex
	volumes map[string]hollow.Volume // by claim
	holds   map[string]bool          // nil: not computed
}

func (m *maker) resolve(_, claim string) (hollow.Volume, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.volumes[claim]
	return v, ok
}

// The service account may exist: kube-controller-manager makes it, too.
func (m *maker) namespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if m.enforced {
		ns.Labels = map[string]string{sandbox.EnforceLabel: "true"}
	}
	if _, err := m.kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := m.kube.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("service account of %s: %w", name, err)
	}
	return nil
}

func (m *maker) volume(ctx context.Context, namespace, name string) error {
	disk, err := m.disk.Do(ctx, diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: name}})
	if err == nil && disk.Volume == "" {
		err = errors.New(disk.Message)
	}
	if err != nil {
		return fmt.Errorf("disk %s: %w", name, err)
	}
	m.mu.Lock()
	m.volumes[name] = hollow.Volume{
		Handle: disk.Volume, Name: corev1.UniqueVolumeName("kubernetes.io/csi/" + sandbox.DriverName + "^" + disk.Volume),
	}
	m.mu.Unlock()
	return m.bind(ctx, namespace, name, disk.Volume)
}

// It binds instead of kube-controller-manager, since the latter binds singly. An earlier binding by that
// controller is as good.
func (m *maker) bind(ctx context.Context, namespace, name, handle string) error {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claims, volumes := m.kube.CoreV1().PersistentVolumeClaims(namespace), m.kube.CoreV1().PersistentVolumes()
	// Before the PersistentVolume exists the claim would be lost.
	claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: name, StorageClassName: new(""), Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("claim %s: %w", name, err)
	}
	pv, err := volumes.Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: sandbox.DriverName, VolumeHandle: handle}},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name, UID: claim.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("PersistentVolume %s: %w", name, err)
	}
	pv.Status.Phase = corev1.VolumeBound
	if _, err := volumes.UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("PersistentVolume %s: %w", name, err)
	}
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("claim %s: %w", name, err)
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: modes, Capacity: size}
	if _, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("claim %s: %w", name, err)
	}
	return nil
}

func (m *maker) pod(ctx context.Context, namespace, name, node string, labels map[string]string, claims []string) error {
	pod := sandbox.Pod(name, claims...)
	pod.Labels, pod.Spec.NodeName = labels, node
	if _, err := m.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("pod %s: %w", name, err)
	}
	return nil
}

// workloads makes pods anew when their predecessors are gone.
type workloads struct {
	maker  *maker
	perPod int
	queue  chan string

	mu          sync.Mutex
	generations map[string]int
	errs        []error
}

func workloadName(i int) string { return fmt.Sprintf("w-%05d", i) }

func claimsOf(workload string, n int) []string {
	claims := make([]string, n)
	for i := range claims {
		claims[i] = fmt.Sprintf("%s-%d", workload, i)
	}
	return claims
}

func (w *workloads) create(ctx context.Context, workload, node string) error {
	w.mu.Lock()
	w.generations[workload]++
	name := fmt.Sprintf("%s-g%d", workload, w.generations[workload])
	w.mu.Unlock()
	return w.maker.pod(ctx, workloadNamespace, name, node, map[string]string{workloadLabel: workload}, claimsOf(workload, w.perPod))
}

func (w *workloads) run(ctx context.Context) {
	for range abreast {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case workload := <-w.queue:
					if err := w.create(ctx, workload, ""); err != nil && ctx.Err() == nil {
						w.mu.Lock()
						w.errs = append(w.errs, err)
						w.mu.Unlock()
					}
				}
			}
		}()
	}
}

func (w *workloads) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.errs...)
}
