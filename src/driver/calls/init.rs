use serde_json::json;

use crate::config::Loaded;
use crate::reply::Reply;

/// `init`: says what the driver can do. It runs under a lock of kubelet that every volume of the
/// node waits for, so it starts nothing; and a config that cannot be read is only said, since a
/// failure here would unload the driver while volumes are mounted.
pub fn run(config: &Loaded) -> Reply {
    let known = &config.config;
    let reply = Reply {
        capabilities: Some(json!({
            "attach": known.attach,
            "fsGroup": known.fs_group,
            "requiresFSResize": known.requires_fs_resize,
            "selinuxRelabel": known.selinux_relabel,
            "supportsMetrics": known.supports_metrics,
        })),
        ..Reply::success()
    };
    match &config.problem {
        None => reply,
        Some(problem) => reply.with_message(&format!(
            "{problem}; until that is corrected no volume is brought up, and every key but \
             `attach` has its default"
        )),
    }
}
