// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"github.com/moorage-dev/moorage/test/sample"
	"github.com/moorage-dev/moorage/test/ticketwriter"
)

const driver = sample.Driver

var (
	now    = sample.Now
	facts  = sample.Ledger
	ticket = sample.Ticket
)

type writer = ticketwriter.Writer
