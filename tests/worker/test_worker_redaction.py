"""No secret is ever recorded."""

from __future__ import annotations

import json
import time

import pytest

from isorun.worker.redaction import (
    REDACTED,
    recorded_variables,
    redacted_argv,
    secret_values,
    withheld_values,
    without_secrets,
)

SECRET_NAMES = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_API_KEY",
    "GCP_SERVICE_ACCOUNT_KEY",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HUGGINGFACE_TOKEN",
    "WANDB_API_KEY",
    "COMET_API_KEY",
    "NEPTUNE_API_TOKEN",
    "CLEARML_API_SECRET_KEY",
    "CLEARML_API_ACCESS_KEY",
    "MLFLOW_TRACKING_PASSWORD",
    "MLFLOW_TRACKING_TOKEN",
    "MLFLOW_TRACKING_USERNAME",
    "DATABRICKS_TOKEN",
    "SNOWFLAKE_PASSWORD",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "COHERE_API_KEY",
    "REPLICATE_API_TOKEN",
    "TOGETHER_API_KEY",
    "MISTRAL_API_KEY",
    "GROQ_API_KEY",
    "LANGCHAIN_API_KEY",
    "PINECONE_API_KEY",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITLAB_TOKEN",
    "CI_JOB_TOKEN",
    "CI_REGISTRY_PASSWORD",
    "BITBUCKET_APP_PASSWORD",
    "CIRCLE_TOKEN",
    "TRAVIS_TOKEN",
    "CODECOV_TOKEN",
    "SONAR_TOKEN",
    "NPM_TOKEN",
    "PYPI_TOKEN",
    "TWINE_PASSWORD",
    "UV_PUBLISH_TOKEN",
    "POETRY_PYPI_TOKEN_PYPI",
    "DOCKER_PASSWORD",
    "DOCKER_AUTH_CONFIG",
    "KUBECONFIG",
    "VAULT_TOKEN",
    "CONSUL_HTTP_TOKEN",
    "TF_VAR_db_password",
    "TF_TOKEN_app_terraform_io",
    "DATABASE_URL",
    "PGPASSWORD",
    "POSTGRES_PASSWORD",
    "MYSQL_PWD",
    "MYSQL_ROOT_PASSWORD",
    "REDIS_URL",
    "MONGODB_URI",
    "SECRET_KEY",
    "DJANGO_SECRET_KEY",
    "FLASK_SECRET_KEY",
    "JWT_SECRET",
    "SESSION_SECRET",
    "ENCRYPTION_KEY",
    "SLACK_BOT_TOKEN",
    "SLACK_WEBHOOK_URL",
    "DISCORD_TOKEN",
    "TELEGRAM_BOT_TOKEN",
    "TWILIO_AUTH_TOKEN",
    "SENDGRID_API_KEY",
    "STRIPE_SECRET_KEY",
    "SENTRY_DSN",
    "SSH_AUTH_SOCK",
    "SSH_PRIVATE_KEY",
    "KAGGLE_KEY",
    "KAGGLE_USERNAME",
    "PAPERSPACE_API_KEY",
    "LAMBDA_API_KEY",
    "RUNPOD_API_KEY",
    "NGC_API_KEY",
    "NVIDIA_API_KEY",
    "ROBOFLOW_API_KEY",
    "OMP_NUM_THREADS_TOKEN",
    "MKL_SECRET",
    "CUDA_API_KEY",
    "TORCH_TOKEN",
    "PYTORCH_PASSWORD",
    "XLA_SECRET",
    "JAX_API_KEY",
    "KERAS_TOKEN",
]


def test_none_of_the_real_world_secret_names_is_recorded_nor_their_values():
    environ = {name: f"value-of-{name}" for name in SECRET_NAMES}
    recorded = recorded_variables({**environ, "OMP_NUM_THREADS": "2"})
    assert recorded == {"OMP_NUM_THREADS": "2"}
    assert len(SECRET_NAMES) >= 90


def test_no_secret_reaches_any_file_of_a_run_folder(train, tmp_path):
    environ = {name: f"s3cr3t-{number}-value" for number, name in enumerate(SECRET_NAMES)}
    script = tmp_path / "train.py"
    script.write_text("import isorun, random; isorun.log(epoch=1, acc=.5); isorun.log(acc='x'); random.seed(1)")
    trained = train(str(script), "--token", "s3cr3t-argument", "--lr", "0.1", "--where=s3cr3t-10-value", extra=environ)
    assert trained.of_kind("row"), trained.stderr
    for file in trained.folder.iterdir():
        assert b"s3cr3t" not in file.read_bytes(), file.name
    assert "0.1" in json.dumps(trained.of_kind("start"))


@pytest.mark.parametrize(
    "argv",
    [
        ["--token=hidden-value"],
        ["--hub_token", "hidden-value"],
        ["--wandb-api-key", "hidden-value"],
        ["--password=hidden-value"],
        ["trainer.wandb.api_key=hidden-value"],
        ["+secret=hidden-value"],
        ["--db", "postgresql://me:hidden-value@host/db"],
        ["--x=https://hidden-value@host/path"],
        ["hf_hidden-value"],
        ["--login=ghp_hidden-value"],
        ["--anything", "prefix-hidden-value-from-env"],
        ["--aws_secret_access_key", "hidden-value"],
        ["-c", "login('hf_hidden-value-0123456789')"],
        ["-c", "password = 'hidden-value or so'"],
        ["-c", "WANDB_API_KEY=hidden-value python train.py"],
        ["-c", "python train.py --hub-token hidden-value"],
        ['{"api_key": "hidden-value"}'],
        ["--header", "Authorization: Bearer hidden-value-0123456789"],
        ["-----BEGIN PRIVATE KEY-----\nhidden-value"],
        ["--note=see -----BEGIN PRIVATE KEY-----\nhidden-value"],
    ],
)
def test_secret_arguments_are_redacted(argv):
    redacted = redacted_argv(["python", "train.py", *argv], {"MY_API_KEY": "hidden-value-from-env"})
    assert "hidden-value" not in " ".join(redacted)
    assert REDACTED in " ".join(redacted)
    assert redacted_argv(redacted, {}) == redacted, "a kept study has the cells it had"


def test_ordinary_arguments_stay_as_they_are():
    argv = ["python", "train.py", "--lr", "0.1", "--tokenizer", "bert", "--max-tokens", "512", "--pin-memory", "1"]
    argv += ["--key-dim", "64", "--compass=3", "--sort-key", "created_at", "--salt", "5", "--pass", "3", "-p", "8080"]
    argv += ["--no-token", "--passes", "3", "data.keys=5x", "s3://bucket/path", "--seed=1", "--pad-token=<pad>"]
    argv += ["-a", "resnet50", "--auth-file", "/home/me/login.json", "-u", "train.py", "--key=/data/keys/a.pem"]
    assert redacted_argv(argv, {"HOME": "/root", "API_KEY": "abc", "SORT_KEY": "train.py"}) == argv


@pytest.mark.parametrize("option", [["--join-key={}"], ["--join-key", "{}"], ["data.keys={}"], ["-c", "t.py --key={}"]])
def test_nothing_of_a_withheld_value_is_told(option):
    first, second = ([word.format(value) for word in option] for value in ("created-1a9f", "changed-2b8e"))
    assert redacted_argv(first, {}) == redacted_argv(second, {})
    assert "created" not in " ".join(redacted_argv(first, {}))


@pytest.mark.parametrize("option", [["--sort-key={}"], ["--sort-key", "{}"], ["data.keys={}"], ["-c", "t.py --key={}"]])
def test_a_word_under_an_ordinary_name_is_kept_as_it_is(option):
    argv = [word.format("accuracy") for word in option]
    assert redacted_argv(argv, {}) == argv


@pytest.mark.parametrize(
    "argv",
    [
        ["-p", "hidden-value1"],
        ["-phidden-value1"],
        ["-u", "me:hidden-value"],
        ["--pw", "hidden-value"],
        ["--password", "-hidden-value1"],
        ["--url", "https://host/x?sig=hidden-value"],
        ["--url=https://host/x?a=1&token=hidden-value"],
        ["curl", "-H", "X-Api-Key: hidden-value1"],
        ["--pass", "hidden-value"],
        ["--pat", "hidden-value"],
        ["--auth", "hidden-value"],
        ["--dsn", "hidden-value"],
        ["--creds", "hidden-value"],
        ["--cookie", "hidden-value"],
        ["--salt", "hidden-value1"],
    ],
)
def test_values_of_short_and_doubtful_options_are_withheld_too(argv):
    redacted = redacted_argv(argv, {})
    assert "hidden-value" not in " ".join(redacted)
    assert redacted_argv(redacted, {}) == redacted
    assert any("hidden-value" in value for value in withheld_values(argv, {})), "what is withheld can be masked"


def test_logins_in_the_addresses_of_any_variable_are_secret():
    assert secret_values({"MY_STORE": "redis://me:hidden-value@host/0", "OTHER": "https://host/path"}) == {
        "me:hidden-value",
        "hidden-value",
    }


def test_words_and_paths_are_no_secrets_whatever_the_variable_is_called():
    assert (
        secret_values({"SORT_KEY": "accuracy", "MY_KEY": "/data/key.pem", "X_SALT": "5", "USE_TOKEN": "true"}) == set()
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["--max-tokens", "512000000"],
        ["--beam-size-token", "100000000"],
        ["--add-src-lang-token", "lang_v2"],
        ["--num-speculative-tokens=5"],
        ["--modifier_token", "<new1>"],
        ["--prompt_key", "data/train_v2.json"],
        ["--checkpoint-key=meta-llama/Llama-3.2-1B"],
        ["bash", "-c", "t.py --hub-token $HF_TOKEN"],
        ["hf_model_name_or_path=bert-base-2"],
        ["sk-learn-contrib-1.0"],
        ["ASIA-PACIFIC-REGION-2024"],
    ],
)
def test_settings_of_trainings_stay_readable_for_a_withheld_one_hides_what_differed(argv):
    assert redacted_argv(argv, {}) == argv


def test_two_values_of_a_password_look_alike():
    assert redacted_argv(["--password=hidden-1"], {}) == redacted_argv(["--password=hidden-2"], {})


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("key = PRNGKey(0); train(key)", "key = PRNGKey(1); train(key)"),
        ("password='hidden-value'; train(lr=0.1)", "password='hidden-value'; train(lr=0.2)"),
        ("WANDB_API_KEY=hidden-value python t.py --lr 0.1", "WANDB_API_KEY=hidden-value python t.py --lr 0.2"),
    ],
)
def test_of_code_and_shell_commands_only_the_secrets_go_so_that_two_of_them_stay_apart(text, other):
    redacted, again = redacted_argv(["bash", "-c", text], {}), redacted_argv(["bash", "-c", other], {})
    assert redacted != again
    assert "hidden-value" not in " ".join([*redacted, *again])


@pytest.mark.parametrize(
    "piece",
    [
        *("x", "a.b-", "api_key", "bearer ", "hf_", "eyJ", "authorization:", "secret=", "x://", "key", "login -p "),
        *("x://a:b@", "--token ", "-u a:", "h:5432:a:b:", "password>", "auth=('a', '", "-----BEGIN ", "token='"),
    ],
)
def test_very_long_arguments_are_looked_through_quickly(piece):
    began = time.process_time()
    redacted_argv([piece * (130_000 // len(piece))], {})
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("postgres://u:p@ss/w@h/d", f"postgres://{REDACTED}@h/d"),
        ("x=http://a:b@c,http://d:e@f", f"x=http://{REDACTED}@c,http://{REDACTED}@f"),
        ("http://host.example:8080/a@b/c", "http://host.example:8080/a@b/c"),
        ("https://medium.com/@someone/post", "https://medium.com/@someone/post"),
        ("https://h/p?x=a:b@c", "https://h/p?x=a:b@c"),
        ("ssh://git@h/x", "ssh://git@h/x"),
        ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
    ],
)
def test_a_login_is_told_from_a_port_and_a_path(printed, kept):
    assert without_secrets(printed) == kept
