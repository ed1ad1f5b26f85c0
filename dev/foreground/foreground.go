// Package foreground runs a command on behalf of this process: its streams, its
// signals and its exit status are the command's.
package foreground

import (
	"os"
	"os/exec"
	"syscall"

	"sluice.dev/sluice/platform/process/child"
)

// Run runs argv with the environment env until it ends and returns its exit
// status, 128 plus the number for a signal. What arrives on signals is passed on
// to the command and the processes of its group. The command is asked to end
// when this process dies.
func Run(argv, env []string, signals <-chan os.Signal) (status int, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	proc, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return 1, err
	}
	for {
		select {
		case sig := <-signals:
			if err := proc.SignalGroup(sig.(syscall.Signal)); err != nil {
				return 1, err
			}
		case <-proc.Done():
			return proc.ExitCode(), nil
		}
	}
}
