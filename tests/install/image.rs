//! The container image and the manifests that run it.

use crate::plugin_dir::{PluginDir, driver, file, same};
use crate::support::{put, run};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes the image of these executables, or of the driver, and unpacks the archive.
fn image(node: &PluginDir, name: &str, executables: &[&Path]) -> PathBuf {
    let archive = node.path(name);
    let output = Command::new("bash")
        .arg(file("install/image.sh"))
        .arg(&archive)
        .args(executables)
        .env("DRIVER", driver())
        .env("IMAGE", "localhost/test:1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let dir = node.path(&format!("{name}.unpacked"));
    fs::create_dir(&dir).unwrap();
    unpack(&archive, &dir);
    dir
}

fn unpack(archive: &Path, to: &Path) {
    let (archive, to) = (archive.to_str().unwrap(), to.to_str().unwrap());
    run("tar", &["-xf", archive, "-C", to]);
}

fn parsed(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// The file of a blob that a descriptor points to, with its hash and size checked.
fn blob(image: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().unwrap();
    let hash = digest.strip_prefix("sha256:").unwrap();
    let path = image.join("blobs/sha256").join(hash);
    let sum = run("sha256sum", &[path.to_str().unwrap()]);
    assert!(sum.starts_with(hash), "{digest}");
    let size = fs::metadata(&path).unwrap().len();
    assert_eq!(descriptor["size"].as_u64(), Some(size));
    path
}

/// The config of the image that a descriptor leads to, which holds this executable and nothing else.
fn config_of(image: &Path, descriptor: &Value, executable: &Path) -> Value {
    let manifest = parsed(&blob(image, descriptor));
    let config = parsed(&blob(image, &manifest["config"]));
    let layer = &manifest["layers"][0];
    assert_eq!(config["rootfs"]["diff_ids"][0], layer["digest"]);
    let layer = blob(image, layer);
    let list = run("tar", &["-tvf", layer.to_str().unwrap()]);
    assert_eq!(list.lines().count(), 1, "{list}");
    assert!(list.starts_with("-rwxr-xr-x 0/0 "), "{list}");
    unpack(&layer, image);
    assert!(same(&image.join("lvm"), executable));
    config
}

/// The config of the image that a docker finds which knows no index.
fn config_for_docker(image: &Path) -> Value {
    let docker = &parsed(&image.join("manifest.json"))[0];
    assert_eq!(docker["RepoTags"][0], "localhost/test:1");
    assert!(image.join(docker["Layers"][0].as_str().unwrap()).exists());
    parsed(&image.join(docker["Config"].as_str().unwrap()))
}

/// The one entry of the image's index.
fn entry(image: &Path) -> Value {
    let index = parsed(&image.join("index.json"));
    let [entry] = &index["manifests"].as_array().unwrap()[..] else {
        panic!("{index}");
    };
    let names = &entry["annotations"];
    assert_eq!(names["io.containerd.image.name"], "localhost/test:1");
    entry.clone()
}

#[test]
fn the_image_holds_the_executable_and_nothing_else() {
    let node = PluginDir::new();
    let image = image(&node, "image.tar", &[]);
    let layout = parsed(&image.join("oci-layout"));
    assert_eq!(layout["imageLayoutVersion"], "1.0.0");
    let entry = entry(&image);
    assert_eq!(entry["platform"]["os"], "linux");
    let config = config_of(&image, &entry, &driver());
    assert_eq!(config_for_docker(&image), config);
    assert_eq!(config["config"]["Entrypoint"], json!(["/lvm"]));
    assert_eq!(config["config"]["Cmd"], json!(["install", "--follow"]));
    let labels = &config["config"]["Labels"];
    for (label, value) in [
        ("version", env!("CARGO_PKG_VERSION")),
        ("licenses", env!("CARGO_PKG_LICENSE")),
        ("source", env!("CARGO_PKG_REPOSITORY")),
        ("url", env!("CARGO_PKG_HOMEPAGE")),
        ("description", env!("CARGO_PKG_DESCRIPTION")),
    ] {
        let label = format!("org.opencontainers.image.{label}");
        assert_eq!(labels[&label], value, "{label}");
    }
    // The same executable makes the same image.
    self::image(&node, "again.tar", &[]);
    assert!(same(&node.path("image.tar"), &node.path("again.tar")));
}

#[test]
fn an_image_for_both_architectures_has_one_name_and_the_executable_of_each() {
    let node = PluginDir::new();
    let [here, other] = [node.path("here"), node.path("other")];
    // As far as image.sh can see: it runs neither.
    let mut bytes = fs::read(driver()).unwrap();
    bytes[18] = 62;
    put(&here, bytes.clone());
    bytes[18] = 183;
    put(&other, bytes);
    let image = image(&node, "image.tar", &[&here, &other]);
    let entry = entry(&image);
    let index = parsed(&blob(&image, &entry));
    assert_eq!(index["mediaType"], entry["mediaType"]);
    let cases = [("amd64", &here), ("arm64", &other)];
    assert_eq!(index["manifests"].as_array().unwrap().len(), cases.len());
    for (n, (arch, executable)) in cases.into_iter().enumerate() {
        let found = &index["manifests"][n];
        assert_eq!(found["platform"]["architecture"], arch);
        let config = config_of(&image, found, executable);
        assert_eq!(config["architecture"], arch);
    }
    assert_eq!(config_for_docker(&image)["architecture"], "amd64");
}

fn yaml(name: &str) -> Value {
    serde_yaml_ng::from_str(&fs::read_to_string(file(name)).unwrap()).unwrap()
}

#[test]
fn the_daemonset_has_the_least_privilege_that_installing_needs() {
    let node = PluginDir::new();
    let daemonset = yaml("install/daemonset.yaml");
    // With kubelet 1.25 to 1.32 a node is drained before the driver is written.
    assert_eq!(daemonset["spec"]["updateStrategy"]["type"], "OnDelete");
    let pod = &daemonset["spec"]["template"]["spec"];
    for key in ["hostPID", "hostIPC", "hostNetwork"] {
        assert!(pod[key].is_null(), "{key}");
    }
    assert_eq!(pod["automountServiceAccountToken"], false);
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({
            "runAsUser": 0,
            "privileged": false,
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
            "seLinuxOptions": {"type": "spc_t"},
        })
    );
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("localhost/flexvolume-lvm:{version}");
    assert_eq!(container["image"], name);
    let base = yaml("install/kustomization.yaml");
    assert_eq!(base["images"][0]["newTag"], version);
    // The executable knows the command, and needs no capability for it. With --follow it would not end.
    let args = container["args"].as_array().unwrap().iter();
    let args = args.filter_map(|arg| arg.as_str().filter(|arg| *arg != "--follow"));
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"])
        .arg(driver())
        .args(args)
        .arg("--plugin-dir")
        .arg(node.plugins())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(same(&node.exe(), &driver()));
}

/// The patches of the overlays in docs/daemonset.md change what is there, or add to a list.
#[test]
fn the_overlays_on_the_page_fit_the_daemonset() {
    let text = fs::read_to_string(file("docs/daemonset.md")).unwrap();
    let daemonset = yaml("install/daemonset.yaml");
    let blocks = text.split("```yaml\n").skip(1);
    let blocks = blocks.map(|block| block.split_once("```").unwrap().0);
    let mut found = 0;
    for block in blocks.filter(|block| block.contains("kind: Kustomization")) {
        let overlay: Value = serde_yaml_ng::from_str(block).unwrap();
        assert_eq!(overlay["resources"][0], "../install");
        let tag = &overlay["images"][0]["newTag"];
        assert!(tag.is_null() || tag == env!("CARGO_PKG_VERSION"), "{tag}");
        let patches = &overlay["patches"][0];
        assert_eq!(patches["target"]["name"], daemonset["metadata"]["name"]);
        let steps: Vec<Value> =
            serde_yaml_ng::from_str(patches["patch"].as_str().unwrap()).unwrap();
        for step in steps {
            let path = step["path"].as_str().unwrap();
            let place = daemonset.pointer(path.trim_end_matches("/-")).unwrap();
            if step["op"] == "replace" {
                let option = |value: &Value| {
                    let (name, _) = value.as_str()?.split_once('=')?;
                    Some(name.to_owned())
                };
                assert_eq!(option(place), option(&step["value"]), "{step}");
            } else {
                assert!(place.is_array(), "{step}");
            }
            found += 1;
        }
    }
    assert!(found > 4, "{found}");
}
