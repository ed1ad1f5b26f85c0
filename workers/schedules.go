package workers

import (
	"context"
	"time"

	"github.com/riverqueue/river"
	"sluice.dev/sluice/controlplane/schedules"
	"sluice.dev/sluice/controlplane/schedules/run"
)

// AddSchedules registers the job that carries out the executions of schedules.
func AddSchedules(w *river.Workers, r run.Runner) {
	river.AddWorker(w, &scheduleWorker{runner: r})
}

// ScheduleQueues is how the queue of executions is to be worked: most
// executions wait for somebody else's answer, so many of them fit into one
// process; the short cooldown is what keeps a due run from waiting for the next
// fetch.
func ScheduleQueues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{
		schedules.Queue: {MaxWorkers: 500, FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 50 * time.Millisecond},
	}
}

// scheduleWorker makes the attempts of one execution.
type scheduleWorker struct {
	river.WorkerDefaults[schedules.ExecutionArgs]
	runner run.Runner
}

// Timeout ends a job some time after its lease, when its outcome can no longer
// count.
func (*scheduleWorker) Timeout(*river.Job[schedules.ExecutionArgs]) time.Duration {
	return schedules.Lease + time.Second
}

// NextRetry tries again at once: an error means that the database was away.
func (*scheduleWorker) NextRetry(*river.Job[schedules.ExecutionArgs]) time.Time {
	return time.Now().Add(time.Second)
}

// Work makes one attempt.
func (w *scheduleWorker) Work(ctx context.Context, job *river.Job[schedules.ExecutionArgs]) error {
	return WorkSchedule(ctx, w.runner, job)
}

// WorkSchedule makes one attempt of the job's execution and says what the queue
// is to do with the job. A retry by the schedule's policy snoozes it, which
// does not count against its attempts.
func WorkSchedule(ctx context.Context, r run.Runner, job *river.Job[schedules.ExecutionArgs]) error {
	again, err := r.Run(ctx, job.Args.Execution)
	if err != nil {
		return err
	}
	if again > 0 {
		return river.JobSnooze(again)
	}
	return nil
}
