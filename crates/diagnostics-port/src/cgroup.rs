//! Limits of the control groups of a process, as a container sets them.
//!
//! Facts from the kernel's documents "Control Group v2" (memory.max, cpu.max; a limit holds for all groups below),
//! "Memory Resource Controller" (memory.limit_in_bytes) and "CFS Bandwidth Control" (cpu.cfs_quota_us,
//! cpu.cfs_period_us), and cgroup_namespaces(7).

/// The memory and the processor time that a process may use. The least of the limits of its groups counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Memory in bytes; `None`: without limit.
    pub memory_bytes: Option<u64>,
    /// Processor time, in thousandths of a processor; `None`: without limit.
    pub cpu_millicores: Option<u64>,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::cgroup_limits;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::CgroupLimits;

    /// Memory limits from this on mean "unlimited": version 1 writes the largest multiple of the page size then.
    const NO_MEMORY_LIMIT: u64 = 1 << 62;

    /// The limits of a process; `None` when its groups cannot be seen from here.
    pub(crate) fn cgroup_limits(process: u32) -> Option<CgroupLimits> {
        limits_in(Path::new("/"), process)
    }

    /// The limits below another root of the file system.
    fn limits_in(root: &Path, process: u32) -> Option<CgroupLimits> {
        let folder = root.join(format!("proc/{process}"));
        let groups = fs::read_to_string(folder.join("cgroup")).ok()?;
        let mounted = root.join("sys/fs/cgroup");
        // As the process sees it: in a container, its own group is the root there.
        let own = folder.join("root/sys/fs/cgroup");
        let mut found = Found::default();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let has = |name: &str| controllers.split(',').any(|one| one == name);
            let kinds = [("", controllers.is_empty()), ("memory", has("memory")), ("cpu", has("cpu"))];
            for (mount, _) in kinds.iter().filter(|(_, is_it)| *is_it) {
                found.all_above(&mounted.join(mount), path);
                found.group(&own.join(mount));
            }
        }
        found.is_known.then_some(found.limits)
    }

    #[derive(Default)]
    struct Found {
        limits: CgroupLimits,
        is_known: bool,
    }

    impl Found {
        /// The limits of a group and of those above it. Groups outside of our own namespace have no path here.
        fn all_above(&mut self, mount: &Path, path: &str) {
            let path = Path::new(path.trim_start_matches('/'));
            let is_outside = path.components().any(|part| !matches!(part, std::path::Component::Normal(_)));
            let group: PathBuf = mount.join(path);
            if is_outside || !group.is_dir() {
                return;
            }
            self.is_known = true;
            group.ancestors().take_while(|above| above.starts_with(mount)).for_each(|above| self.group(above));
        }

        fn group(&mut self, group: &Path) {
            let read = |name: &str| fs::read_to_string(group.join(name)).ok();
            let number = |text: &str| text.trim().parse::<u64>().ok();
            for text in ["memory.max", "memory.limit_in_bytes"].into_iter().filter_map(read) {
                self.is_known = true;
                let limit = number(&text).filter(|limit| *limit < NO_MEMORY_LIMIT);
                self.limits.memory_bytes = least(self.limits.memory_bytes, limit);
            }
            // "max" and -1 do not parse as numbers: they mean "unlimited".
            let of_both = read("cpu.max").map(|text| {
                let mut words = text.split_whitespace().map(number);
                (words.next().flatten(), words.next().flatten())
            });
            let of_files = || Some((number(&read("cpu.cfs_quota_us")?), number(&read("cpu.cfs_period_us")?)));
            if let Some((quota, period)) = of_both.or_else(of_files) {
                self.is_known = true;
                let share = quota.zip(period).and_then(|(quota, period)| quota.checked_mul(1000)?.checked_div(period));
                self.limits.cpu_millicores = least(self.limits.cpu_millicores, share);
            }
        }
    }

    fn least(known: Option<u64>, other: Option<u64>) -> Option<u64> {
        match (known, other) {
            (Some(known), Some(other)) => Some(known.min(other)),
            (known, other) => known.or(other),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn limits(files: &[(&str, &str)]) -> Option<CgroupLimits> {
            let root = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = root.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            limits_in(root.path(), 7)
        }

        fn of(memory_bytes: Option<u64>, cpu_millicores: Option<u64>) -> Option<CgroupLimits> {
            Some(CgroupLimits { memory_bytes, cpu_millicores })
        }

        #[test]
        fn the_least_limit_of_all_groups_counts() {
            let pod = [
                ("proc/7/cgroup", "0::/pod/app\n"),
                ("sys/fs/cgroup/pod/memory.max", "1073741824\n"),
                ("sys/fs/cgroup/pod/cpu.max", "200000 100000\n"),
                ("sys/fs/cgroup/pod/app/memory.max", "max\n"),
                ("sys/fs/cgroup/pod/app/cpu.max", "50000 100000\n"),
            ];
            assert_eq!(limits(&pod), of(Some(1 << 30), Some(500)));
            let free = [
                ("proc/7/cgroup", "0::/pod\n"),
                ("sys/fs/cgroup/pod/memory.max", "max\n"),
                ("sys/fs/cgroup/pod/cpu.max", "max 100000\n"),
            ];
            assert_eq!(limits(&free), of(None, None));
            // Without a container there are no files of limits at the root.
            assert_eq!(limits(&[("proc/7/cgroup", "0::/\n"), ("sys/fs/cgroup/cgroup.procs", "7\n")]), of(None, None));
        }

        #[test]
        fn limits_of_version_1_are_those_of_its_two_controllers() {
            let files = [
                ("proc/7/cgroup", "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n3:pids:/docker/a\n"),
                ("sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "536870912\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "150000\n"),
                ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ];
            assert_eq!(limits(&files), of(Some(512 << 20), Some(1500)));
        }

        #[test]
        fn what_cannot_be_seen_is_not_known() {
            // From a container beside it.
            let outside = [
                ("proc/7/cgroup", "0::/../other\n"),
                ("sys/fs/cgroup/memory.max", "1000\n"),
                ("other/memory.max", "5\n"),
            ];
            assert_eq!(limits(&outside), None);
            // Where its files can be read, they say it.
            let own = [("proc/7/cgroup", "0::/../other\n"), ("proc/7/root/sys/fs/cgroup/memory.max", "2000\n")];
            assert_eq!(limits(&own), of(Some(2000), None));
            assert_eq!((limits(&[]), limits(&[("proc/7/cgroup", "nonsense")])), (None, None));
            // A negative limit, and a period of 0.
            let odd = [
                ("proc/7/cgroup", "0::/a\n"),
                ("sys/fs/cgroup/a/memory.max", "-5\n"),
                ("sys/fs/cgroup/a/cpu.max", "1 0\n"),
            ];
            assert_eq!(limits(&odd), of(None, None));
        }
    }
}
