package load

import (
	"time"
)

// Until tries f for a minute and returns its last error. It looks again and again
// because what it waits for are foreign processes, which give no signal; nothing
// is measured meanwhile.
func Until(f func() error) error {
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}
