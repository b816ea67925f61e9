//! The one JSON document that kubelet reads.
//!
//! Source: kubelet's `pkg/volume/flexvolume/driver-call.go`, `DriverStatus`.

use serde::Serialize;

use crate::config::Config;
use crate::error::{fold, one_line};

/// The three words that kubelet knows; any other is a failure too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Status {
    /// Done, or there was nothing to do.
    Success,
    /// Not done; `message` says why and what to do.
    Failure,
    /// The driver does not have this call-out: kubelet never makes it again.
    #[serde(rename = "Not supported")]
    NotSupported,
}

/// What `init` says that the driver can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools)] // kubelet's own shape
pub struct Capabilities {
    /// kubelet makes the call-outs from `attach` to `detach`, not `mount` and `unmount` alone.
    pub attach: bool,
    /// kubelet relabels the volume for `SELinux`.
    pub selinux_relabel: bool,
    /// kubelet publishes the size and use of the mounted filesystem.
    pub supports_metrics: bool,
    /// kubelet applies the pod's fsGroup.
    pub fs_group: bool,
    /// kubelet calls `expandfs` when a claim grows.
    #[serde(rename = "requiresFSResize")]
    pub requires_fs_resize: bool,
}

impl From<&Config> for Capabilities {
    fn from(config: &Config) -> Self {
        Self {
            attach: config.attach,
            selinux_relabel: config.selinux_relabel,
            supports_metrics: config.supports_metrics,
            fs_group: config.fs_group,
            requires_fs_resize: config.requires_fs_resize,
        }
    }
}

/// A reply to a call-out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// How it went.
    pub status: Status,
    /// Why it failed and what to do, or what a success should not hide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The device of `attach` and `waitforattach`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The answer of `isattached`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attached: Option<bool>,
    /// The answer of `init`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
}

impl Reply {
    fn of(status: Status) -> Self {
        Self {
            status,
            message: None,
            device: None,
            attached: None,
            capabilities: None,
        }
    }

    /// Done.
    #[must_use]
    pub fn success() -> Self {
        Self::of(Status::Success)
    }

    /// Not done, with the error and all its causes as the message.
    #[must_use]
    pub fn failure(error: &anyhow::Error) -> Self {
        Self::of(Status::Failure).with_message(&one_line(error))
    }

    /// A call-out that this driver does not have.
    #[must_use]
    pub fn not_supported(message: &str) -> Self {
        Self::of(Status::NotSupported).with_message(message)
    }

    /// The same with a message, folded to one line. An empty one is left out.
    #[must_use]
    pub fn with_message(mut self, message: &str) -> Self {
        self.message = Some(fold(message)).filter(|m| !m.is_empty());
        self
    }

    /// The same with a device.
    #[must_use]
    pub fn with_device(mut self, device: impl Into<String>) -> Self {
        self.device = Some(device.into());
        self
    }

    /// The same with the answer of `isattached`.
    #[must_use]
    pub fn with_attached(mut self, attached: bool) -> Self {
        self.attached = Some(attached);
        self
    }

    /// The same with the answer of `init`.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// The document, one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Strings, bools and an enum: nothing in it can fail to be written.
        serde_json::to_string(self).unwrap_or_else(|_| r#"{"status":"Failure"}"#.to_owned())
    }
}

impl From<anyhow::Result<Reply>> for Reply {
    fn from(result: anyhow::Result<Reply>) -> Self {
        result.unwrap_or_else(|error| Reply::failure(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_kubelet_reads_it() {
        let cases = [
            (Reply::success(), r#"{"status":"Success"}"#),
            (
                Reply::not_supported("no such call-out"),
                r#"{"status":"Not supported","message":"no such call-out"}"#,
            ),
            (
                Reply::failure(&anyhow::anyhow!("in\nner").context("outer")),
                r#"{"status":"Failure","message":"outer: in ner"}"#,
            ),
            (
                Reply::success().with_device("/dev/mapper/vg-lv"),
                r#"{"status":"Success","device":"/dev/mapper/vg-lv"}"#,
            ),
            (
                Reply::success().with_attached(false),
                r#"{"status":"Success","attached":false}"#,
            ),
            (
                Reply::success().with_capabilities((&Config::default()).into()),
                r#"{"status":"Success","capabilities":{"attach":true,"selinuxRelabel":true,"supportsMetrics":false,"fsGroup":true,"requiresFSResize":true}}"#,
            ),
        ];
        for (reply, want) in cases {
            assert_eq!(reply.to_json(), want);
        }
    }
}
