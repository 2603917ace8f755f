// SPDX-License-Identifier: Apache-2.0

// Package pods runs the containers of a namespace's pods as processes of this
// machine, in clusters whose kubelets run none, and leads Services to them. What
// a container is given is what its pod says and what the kubelet made of it:
// command, arguments, environment, the folders of its volumes, and its service
// account's own token.
//
// Four things can't be as in a container, and are put right in the arguments:
//
//   - a path below a mount becomes the path of the folder that the kubelet filled
//   - ":8443", where 8443 is a port of the container, becomes the pod's address,
//     one of 127.0.0.0/8, and that port, so that pods don't get in each other's way
//   - client-go finds a pod's token at one fixed path only: it is told of it by a
//     kubeconfig, in --kubeconfig, or in the file that --config names
//   - the kubelet's folder, mounted from the host, is that of the pod's own node, of
//     which there are several here. This machine's mount table does not have what is
//     mounted there: kubelets that run no containers mount nothing
//
// Reads: pods, Services; the kubelets' folders. Decides: nothing that a kubelet
// and kube-proxy would decide otherwise. Writes: processes, and files of its own.
package pods
