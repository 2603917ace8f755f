// SPDX-License-Identifier: Apache-2.0

// Package service is the disk service itself: it takes calls, lets faults have
// their way with them, lets the cloud decide, waits as long as a cloud would,
// logs every step and shows the log to the judge.
//
//	reads    requests (from the CSI endpoint and, for node plugins, the admin
//	         API) and, at start, the journal
//	decides  package cloud what is done, package faults what goes wrong,
//	         package writes what the log has of pods' writes, package judge what
//	         was wrong with it
//	writes   the journal, one entry at a time; the answer
//
// An operation that was started belongs to the cloud, not to its caller: it goes
// on when the caller gives up, and is applied when its latency is over. It dies
// only with the process, as if the cloud had dropped it.
//
// # Admin API
//
// HTTP and JSON on a loopback port, without authentication: it is a test bed.
//
//	GET    /healthz                 200 once it serves
//	GET    /log?since=&wait=&call=&phase=&volume=&node=&outcome=&code=&fault=
//	                                entries after since that match; with wait (a
//	                                duration), held until there is one
//	GET    /violations?since=       what the judge found, from a log position on
//	GET    /stats                   counts by call and outcome
//	GET    /disks, /snapshots, /nodes, /nodes/{id}
//	PUT    /disks/{volume}/health   [{"status": "DEGRADED", "reason": "ReplicaLost"}], [] of one that is well
//	PATCH  /nodes/{id}              {"slots": n} or {"fenced": bool}
//	GET    /faults                  faults and how often they hit
//	POST   /faults                  sets one, answers it with its ID
//	DELETE /faults, /faults/{id}    clears all, or one; lets go of held calls
//	POST   /faults/{id}/held        a node's: the diskapi.Request is carried out there;
//	                                answered when the fault is cleared
//	PUT    /latency                 {"call": "ControllerPublishVolume", "latencyMs": n}
//	POST   /calls                   a diskapi.Request, answered by a diskapi.Answer
//	POST   /writes                  a diskapi.Writes, answered by a diskapi.WriteAnswer for each
//	POST   /finish                  end of the run: the judge looks for leftovers
package service
