// Command sluice holds every process of the platform, and the commands with
// which people use it. This package has flags and commands only; what a process
// is made of is in internal/app.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // zones where the machine has none

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/platform/process/memlimit"
	"sluice.dev/sluice/platform/process/sandbox"
)

func main() {
	sandbox.Main(media.Confined()) // does not return in a process that handles strangers' files
	_, set := os.LookupEnv(memlimit.Variable)
	memlimit.Apply(set)
	os.Exit(execute(os.Args[1:]))
}

// execute runs one command and returns the exit status: 0, 1 for a failure, or what
// the command says of its result.
func execute(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := commands(app.Environment{Lookup: os.LookupEnv})
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

func commands(env app.Environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "sluice",
		Short:         "An API gateway on Envoy, with its control plane, workers and tools",
		Version:       app.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(&cobra.Group{ID: "processes", Title: "Processes:"}, &cobra.Group{ID: "use", Title: "Commands:"})
	root.SetVersionTemplate("sluice {{.Version}}\n")
	for id, list := range map[string][]*cobra.Command{"processes": processes(env), "use": uses(env)} {
		for _, c := range list {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	return root
}

// processes are the commands that run until they are told to stop.
func processes(env app.Environment) []*cobra.Command {
	seed := process(env, "seed", "initialise an empty database: schema, default configuration, first account", app.Seed)
	seed.Long = "Brings the database to this version's schema. In an empty one it also puts the default configuration, and makes a first account with an API key,\n" +
		"an admin key and somebody who can sign in, and writes them to dev.env in the state folder. Called again it changes nothing that is there."
	return []*cobra.Command{
		upCommand(env),
		process(env, "controlplane", "serve edges, the public API and the admin API", app.RunControlPlane),
		process(env, "worker", "deliver webhooks and run schedules", app.RunWorker),
		process(env, "runtime", "serve the chat runtime", app.RunRuntime),
		process(env, "media", "serve the reference product", app.RunMedia),
		process(env, "engine", "run the media engine of the reference product", app.RunEngine),
		process(env, "edge", "supervise one Envoy", app.RunEdge),
		migrateCommand(env),
		seed,
	}
}

// process is a command that runs until it is told to stop.
func process(env app.Environment, name, short string, run func(context.Context, app.Environment) error) *cobra.Command {
	return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		env, err := env.ForProcess(name)
		if err != nil {
			return err
		}
		return run(c.Context(), env)
	}}
}

// uses are the commands with which people use a platform that runs.
func uses(env app.Environment) []*cobra.Command {
	return append(objectCommands(env),
		keyCommand(env),
		clientCertCommand(env),
		accountCommand(env),
		appCommand(env),
		sessionCommand(env),
		invoiceCommand(env),
		limitCommand(env),
		allowlistCommand(env),
		initCommand(),
		validateCommand(env),
		importCommand(env),
		applyCommand(env),
		configCommand(env),
		edgesCommand(env),
		statusCommand(env),
		requestsCommand(env),
		cacheCommand(env),
		certificatesCommand(env),
		requestCommand(env),
		backupCommand(env),
		restoreCommand(env),
		resealCommand(env),
		secretsCommand(env),
		x402Command(env),
		cronCommand(),
		demoCommand(env),
		certsCommand(),
		toolsCommand(env),
		healthCommand(),
	)
}
