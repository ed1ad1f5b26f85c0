package main

import (
	"context"

	"github.com/spf13/cobra"
)

// processes are the commands that run until they are told to stop.
func processes(env environment) []*cobra.Command {
	with := func(f func(context.Context, environment) error) func(context.Context) error {
		return func(ctx context.Context) error { return f(ctx, env) }
	}
	return []*cobra.Command{
		upCommand(env),
		process("controlplane", "serve edges, the public API and the admin API", with(runControlPlane)),
		process("worker", "deliver webhooks and run schedules", with(runWorker)),
		process("runtime", "serve the chat runtime", with(runRuntime)),
		process("media", "serve the reference product", with(runMedia)),
		process("engine", "run the media engine of the reference product", with(runEngine)),
		process("edge", "supervise one Envoy", with(runEdge)),
		migrateCommand(env),
	}
}

// uses are the commands with which people use a platform that runs.
func uses(env environment) []*cobra.Command {
	return []*cobra.Command{
		keyCommand(env),
		accountCommand(env),
		appCommand(env),
		sessionCommand(env),
		limitCommand(env),
		allowlistCommand(env),
		applyCommand(env),
		configCommand(env),
		routeCommand(env),
		productCommand(env),
		planCommand(env),
		classCommand(env),
		edgesCommand(env),
		x402Command(env),
		cronCommand(),
		demoCommand(env),
		certsCommand(),
	}
}
