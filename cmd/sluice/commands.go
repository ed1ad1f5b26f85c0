package main

import (
	"github.com/spf13/cobra"
)

// processes are the commands that run until they are told to stop.
func processes(env environment) []*cobra.Command {
	return []*cobra.Command{
		upCommand(env),
		process(env, "controlplane", "serve edges, the public API and the admin API", runControlPlane),
		process(env, "worker", "deliver webhooks and run schedules", runWorker),
		process(env, "runtime", "serve the chat runtime", runRuntime),
		process(env, "media", "serve the reference product", runMedia),
		process(env, "engine", "run the media engine of the reference product", runEngine),
		process(env, "edge", "supervise one Envoy", runEdge),
		migrateCommand(env),
		seedCommand(env),
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
		statusCommand(env),
		backupCommand(env),
		restoreCommand(env),
		resealCommand(env),
		secretsCommand(env),
		x402Command(env),
		cronCommand(),
		demoCommand(env),
		certsCommand(),
		healthCommand(),
	}
}
