// Command sluice holds every process of the platform, and the commands with
// which people use it. This package is wiring only: it reads the environment,
// builds what a process needs and runs it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	_ "time/tzdata" // zones where the machine has none

	"github.com/spf13/cobra"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/platform/process/memlimit"
	"sluice.dev/sluice/platform/process/sandbox"
	"sluice.dev/sluice/platform/process/telemetry"
)

func main() {
	sandbox.Main(media.Confined()) // does not return in a process that handles strangers' files
	_, set := os.LookupEnv(memlimit.Variable)
	memlimit.Apply(set)
	os.Exit(execute(os.Args[1:]))
}

// execute runs one command and returns the exit status: 0, 1 for a failure, 2
// for a wrong call.
func execute(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	env := environment{lookup: os.LookupEnv}
	root := commands(env)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	fmt.Fprintln(os.Stderr, "sluice: "+err.Error())
	return 1
}

// exitStatus is an error that has been told already.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

func commands(env environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "An API gateway on Envoy, with its control plane, workers and tools",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(&cobra.Group{ID: "processes", Title: "Processes:"}, &cobra.Group{ID: "use", Title: "Commands:"})
	for _, c := range processes(env) {
		c.GroupID = "processes"
		root.AddCommand(c)
	}
	for _, c := range uses(env) {
		c.GroupID = "use"
		root.AddCommand(c)
	}
	return root
}

// process is a command that runs until it is told to stop.
func process(env environment, name, short string, f func(context.Context, environment) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		logs, err := env.logs()
		if err != nil {
			return err
		}
		logs.Process = name
		if slices.Contains(processNames, name) {
			env.process = name
		}
		slog.SetDefault(telemetry.NewLogger(os.Stderr, logs))
		return f(c.Context(), env)
	}}
}
