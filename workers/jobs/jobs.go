// Package jobs registers the River jobs of schedules, webhooks and payments, and
// has the loops that a worker runs beside them. What a job is told, and what it does,
// is in the package of its domain; here is when it runs, and what an account may have
// under way at once.
package jobs

import "time"

// storeUnreachable is how long a job is put off when the database is gone.
const storeUnreachable = time.Second
