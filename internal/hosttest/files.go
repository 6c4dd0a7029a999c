package hosttest

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// holdFiles is a helper that makes, opens or listens on what each argument names ("make=PATH", "open=PATH",
// "listen=PATH") and keeps it so.
func holdFiles(args []string) error {
	for _, arg := range args {
		what, path, _ := strings.Cut(arg, "=")
		var err error
		switch what {
		case "make":
			var f *os.File
			if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				_, err = f.Write(make([]byte, 64<<10))
			}
			held = append(held, f)
		case "open":
			var f *os.File
			f, err = os.OpenFile(path, os.O_RDWR, 0)
			held = append(held, f)
		case "listen":
			var ln net.Listener
			ln, err = net.Listen("unix", path)
			held = append(held, ln)
		default:
			err = fmt.Errorf("%q says nothing to the helper", arg)
		}
		if err != nil {
			return err
		}
	}
	fmt.Println("ready")
	time.Sleep(lifetime)
	return nil
}

// held keeps what holdFiles has opened from being collected.
var held []any
