package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/run"
)

// AddSchedules registers the job that carries out the executions of schedules. It
// returns what says, for a ScheduleLoop, which executions have to wait.
func AddSchedules(w *river.Workers, r run.Runner) schedules.Turns {
	s := newShare(scheduleRuns)
	river.AddWorker(w, &scheduleWorker{runner: r, share: s})
	return s
}

// scheduleRuns is how many executions are carried out at once in a process: most
// wait for somebody else's answer. One account has at most a quarter of them.
const scheduleRuns = 1000

// ScheduleQueues is how the queue of executions is to be worked, beside DueJobs. There is
// room for jobs that wait for their account's share; the short cooldown is what keeps a
// due run from waiting for the next fetch.
func ScheduleQueues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{
		schedules.Queue: {MaxWorkers: scheduleRuns + scheduleRuns/2, FetchCooldown: 5 * time.Millisecond, FetchPollInterval: pollSoon},
	}
}

// scheduleWorker makes the attempts of one execution.
type scheduleWorker struct {
	river.WorkerDefaults[schedules.ExecutionArgs]
	runner run.Runner
	share  *share
}

// Timeout ends a job some time after its lease, when its outcome can no longer
// count.
func (*scheduleWorker) Timeout(*river.Job[schedules.ExecutionArgs]) time.Duration {
	return parkFor + schedules.Lease + time.Second
}

// NextRetry tries again at once: an error means that the database was away.
func (*scheduleWorker) NextRetry(*river.Job[schedules.ExecutionArgs]) time.Time {
	return time.Now().Add(time.Second)
}

// Work makes one attempt, or puts the job off while its account has its share of
// attempts under way.
func (w *scheduleWorker) Work(ctx context.Context, job *river.Job[schedules.ExecutionArgs]) error {
	release, wait := w.share.enter(ctx, job.Args.Account)
	if wait > 0 {
		return putOff(ctx, w.runner, job, wait)
	}
	defer release()
	began := time.Now()
	defer func() { w.share.learn(job.Args.Account, time.Since(began)) }()
	return WorkSchedule(ctx, w.runner, job)
}

// WorkSchedule makes one attempt of the job's execution and says what the queue
// is to do with the job. A retry by the schedule's policy snoozes it, which
// does not count against its attempts, behind the first attempts of all.
func WorkSchedule(ctx context.Context, r run.Runner, job *river.Job[schedules.ExecutionArgs]) error {
	again, err := r.Run(ctx, job.Args.Execution)
	if err != nil {
		return err
	}
	if again == 0 {
		return nil
	}
	if job.Priority >= schedules.Behind {
		return river.JobSnooze(again)
	}
	return putOff(ctx, r, job, again)
}

// putOff snoozes a job and moves it behind others. A database that is away costs
// it the place behind them, no more.
func putOff(ctx context.Context, r run.Runner, job *river.Job[schedules.ExecutionArgs], wait time.Duration) error {
	if err := r.Store.Postpone(ctx, job.ID, job.Args.Execution, time.Now().Add(wait)); err != nil {
		cmp.Or(r.Log, slog.Default()).WarnContext(ctx, "execution not put behind others", "cause", err)
	}
	return river.JobSnooze(wait)
}
