package scheduler

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

const (
	// proverNice is the lowest priority: measured, it gives checks back their idle latency for a tenth of the proving
	// rate (ARCHITECTURE.md section 7).
	proverNice = 19
	// proverOOMScore makes the kernel prefer the prover to the node when memory is out; 1000 is the most.
	proverOOMScore = 500
)

// Place returns the function that readies a command of a class for its start: the command is run by the shim, in a
// process group of its own. It changes Path, Args and SysProcAttr and nothing else. A prover gets the place that tier and
// budget give at the time of the call; at T2 it is born in its leaf, so that no instruction of it runs outside. A verifier
// stays where the node is.
func (s *Scheduler) Place(class Class) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		if cmd.Err != nil {
			return cmd.Err
		}
		where, groups := s.place()
		args := []string{"aggnode", ChildExecCommand, "--parent", strconv.Itoa(os.Getpid())}
		switch class {
		case ClassProver:
			args = append(args, "--nice", strconv.Itoa(proverNice), "--oom", strconv.Itoa(proverOOMScore))
			if s.cfg.SchedIdle {
				args = append(args, "--sched-idle")
			}
			if s.cfg.DataMax > 0 {
				args = append(args, "--rlimit-data", strconv.FormatUint(s.cfg.DataMax, 10))
			}
			if cpus := s.proverCPUs(&where, s.Budget()); cpus != nil {
				args = append(args, "--cpus", formatCPUs(cpus))
			}
		case ClassVerifier:
		case ClassUnknown:
			return fmt.Errorf("place a child: class %s", class)
		}
		args = append(args, "--", cmd.Path)
		if len(cmd.Args) > 1 {
			args = append(args, cmd.Args[1:]...)
		}
		cmd.Path, cmd.Args = s.cfg.Executable, args
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Setpgid = true
		if groups != nil && class == ClassProver {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(groups.prover.Fd())
		}
		return nil
	}
}
